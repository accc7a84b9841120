"""Whether and how a loop marked INTERLEAVE and its vector loop become register tiles."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.nest.index import stride, variables
from kernelgen.nest.nodes import Accumulate, For, Load, Statement, Store
from kernelgen.nest.walk import loads_of, statements, stored_buffers, vector_loop_of
from kernelgen.targets.cpu.access import flat_index
from kernelgen.targets.cpu.host import Host
from kernelgen.targets.cpu.vector_plan import VectorPlan, copies, static_trips_of, vector_plan

MIN_SIZE = 4


@dataclass(frozen=True)
class TilePlan:
    """Tiles of ``size`` x ``size`` iterations; ``rows`` of them, iterations of the outer loop, are printed at once.

    ``loads`` and ``stores`` are contiguous along the outer loop: they are transposed in registers.
    """

    vector: For
    size: int
    rows: int
    loads: tuple[Load, ...]
    stores: tuple[Store, ...]


def tile_plan(loop: For, host: Host) -> TilePlan | str:
    """The plan, or why the iterations of the outer loop must run one after the other."""
    vector = vector_loop_of(loop.body)
    if vector is None or loop.step != 1:
        return "it is not one vector loop with step 1"
    if loop.var in variables(vector.lower) | variables(vector.upper):
        return "the loops are no rectangle"
    plan = vector_plan(vector, host)
    if not isinstance(plan, VectorPlan):
        return plan
    if plan.reductions:
        return "the vector loop reduces"
    size = _size(plan.lanes, loop, vector)
    if size < MIN_SIZE:
        return "the loops are too short"
    loads, stores = _transposed_loads(loop, vector), _transposed_stores(loop, vector)
    if not loads and not stores:
        return "no access is transposed"
    cheap = copies(tuple(statements(vector.body)))
    return TilePlan(vector, size, size if cheap == 4 else cheap, loads, stores)


def _size(lanes: int, *loops: For) -> int:
    """The lanes, or the largest power of two that the loops have iterations for."""
    shortest = min((trips for loop in loops if (trips := static_trips_of(loop)) is not None), default=lanes)
    return min(lanes, 1 << shortest.bit_length() >> 1)


def _transposed_loads(loop: For, vector: For) -> tuple[Load, ...]:
    """Loads of buffers that the body leaves alone: they may run first."""
    written = stored_buffers(vector)
    found = [
        load
        for part in vector.body.statements
        for load in loads_of(part)
        if load.buffer.name not in written and _is_transposed(load, loop, vector)
    ]
    return tuple(dict.fromkeys(found))


def _transposed_stores(loop: For, vector: For) -> tuple[Store, ...]:
    """Stores to buffers that nothing else in the body touches: they may run last."""
    touched = [name for part in statements(vector.body) for name in _buffers_of(part)]
    return tuple(
        part
        for part in vector.body.statements
        if isinstance(part, Store) and touched.count(part.buffer.name) == 1 and _is_transposed(part, loop, vector)
    )


def _buffers_of(statement: Statement) -> list[str]:
    own = [statement.buffer.name] if isinstance(statement, Store | Accumulate) else []
    return own + [load.buffer.name for load in loads_of(statement)]


def _is_transposed(access: Load | Store, loop: For, vector: For) -> bool:
    flat = flat_index(access.buffer, access.index)
    return stride(flat, loop.var) == 1 and stride(flat, vector.var) not in (0, 1)
