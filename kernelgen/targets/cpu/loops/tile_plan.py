"""Whether and how a loop marked INTERLEAVE and its vector loop become register tiles."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.errors import ArgumentError
from kernelgen.nest.index import stride, variables
from kernelgen.nest.nodes import Accumulate, For, Load, Statement, Store
from kernelgen.nest.walk import loads_of, statements, stored_buffers, vector_loop_of
from kernelgen.plan import TileChoice
from kernelgen.targets.cpu.loops.planned_loops import ChosenLoop
from kernelgen.targets.cpu.loops.vector_plan import VectorPlan, copies, static_trips_of, vector_plan
from kernelgen.targets.cpu.statements.access import flat_index
from kernelgen.targets.cpu.text.host import Host

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
    """The plan that the loop carries or that its choice makes, or why its iterations run one after the other."""
    if isinstance(loop, ChosenLoop):
        return loop.plan
    return planned_tiles(loop, choose_tiles(loop, host), host)


def planned_tiles(loop: For, choice: TileChoice, host: Host) -> TilePlan | str:
    """The plan of a ``choice`` for ``loop`` on the processor ``host``. Raises ArgumentError when the loops allow no
    tiles.
    """
    if choice.size == 1:
        return choice.why or "chosen so"
    vector, obstacle = _vector_of(loop, host)
    if obstacle or vector is None:
        raise ArgumentError(f"the loop over {loop.var} allows no squares: {obstacle}")
    return TilePlan(vector, choice.size, choice.rows, _transposed_loads(loop, vector), _transposed_stores(loop, vector))


def choose_tiles(loop: For, host: Host) -> TileChoice:
    """The choice for a loop, and why."""
    vector, obstacle = _vector_of(loop, host)
    if obstacle or vector is None:
        return TileChoice(1, why=obstacle)
    plan = vector_plan(vector, host)
    size = _size(plan.lanes, loop, vector) if isinstance(plan, VectorPlan) else 1
    if size < MIN_SIZE:
        return TileChoice(1, why="the loops are too short")
    cheap = copies(tuple(statements(vector.body)))
    loads, stores = _transposed_loads(loop, vector), _transposed_stores(loop, vector)
    names = ", ".join(dict.fromkeys(each.buffer.name for each in (*loads, *stores)))
    return TileChoice(size, size if cheap == 4 else cheap, f"{names} transposed in registers")


def _vector_of(loop: For, host: Host) -> tuple[For | None, str]:
    """The vector loop inside, and why it and the loop around make no squares, if they do not."""
    vector = vector_loop_of(loop.body)
    if vector is None or loop.step != 1:
        return None, "it is not one vector loop with step 1"
    if loop.var in variables(vector.lower) | variables(vector.upper):
        return vector, "the loops are no rectangle"
    plan = vector_plan(vector, host)
    if not isinstance(plan, VectorPlan):
        return vector, plan
    if plan.reductions:
        return vector, "the vector loop reduces"
    if not _transposed_loads(loop, vector) and not _transposed_stores(loop, vector):
        return vector, "no access is transposed"
    return vector, ""


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
