"""Parts of a temporary that is only copied to a place of another buffer: they are stored there.

    A[i, j]: t[i, 0, j] = a[i, j]                              A[i, j]: y[2 i, j] = a[i, j]
    B[i, j]: t[i, 1, j] = b[i, j]                      ->      B[i, j]: y[2 i + 1, j] = b[i, j]
    C[i, p, j]: y[2 i + p, j] = t[i, p, j]

A concatenation in a concatenation is such a copy, and so is one whose dims a reshape has joined between both. What one
statement stores whole is left to grouping, which computes it where it is copied.

Legality. With ``S[i] -> t[g(i)]`` for each part and ``C[x] : t[x] -> y[f(x)]`` over all of ``t``, which nothing else reads, the
parts store ``S[i] -> y[f(g(i))]``: the same elements, and earlier. Values are assigned once, so that nothing reads or stores
those of ``y`` before C.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest.nodes import Accumulate, Load, Space, Store
from kernelgen.poly.grouping.direct_results import is_whole, led_to
from kernelgen.poly.grouping.fusion_groups import effect
from kernelgen.poly.model.scop import Scop, Statement


def forward_stores(scop: Scop) -> Scop:
    """The scop without such copies. Every statement of the operand must hold one store or accumulation."""
    statements = dict(enumerate(scop.statements))
    touching: dict[str, set[int]] = {}
    for number, statement in statements.items():
        for name in statement.touched:
            touching.setdefault(name, set()).add(number)
    gone: set[str] = set()
    for number in range(len(scop.statements)):  # what is copied first has more parts when it is copied again
        load = _copied(statements[number])
        parts = touching[load.buffer.name] - {number} if load is not None else set[int]()
        if load is None or len(parts) < 2 or not all(_stores(statements[part], load) for part in parts):
            continue
        store = effect(statements.pop(number))
        for part in parts:
            statements[part] = _led(statements[part], load, store)
        touching[store.buffer.name] |= parts
        touching[store.buffer.name].discard(number)
        gone.add(load.buffer.name)
    if not gone:
        return scop
    buffers = tuple(buffer for buffer in scop.buffers if buffer.name not in gone)
    return replace(scop, buffers=buffers, statements=tuple(statements.values()))


def _copied(copy: Statement) -> Load | None:
    """What a statement copies, the whole of a temporary to a buffer that was not there before; or None."""
    store = effect(copy)
    if not isinstance(store, Store) or store.buffer.space is Space.INOUT or copy.ordered:
        return None
    load = store.value
    if (
        not isinstance(load, Load)
        or load.buffer.space is not Space.WORKSPACE
        or load.buffer.dtype != store.buffer.dtype
    ):
        return None
    return load if is_whole(copy, load) else None


def _stores(statement: Statement, load: Load) -> bool:
    """Whether a statement stores a part of what is loaded, and does no more with it."""
    part = effect(statement)
    reads = any(read.buffer.name == load.buffer.name for read in statement.reads)
    return isinstance(part, Store) and part.buffer.name == load.buffer.name and not reads and not statement.ordered


def _led(part: Statement, load: Load, store: Store | Accumulate) -> Statement:
    return replace(part, body=(*part.body[:-1], led_to(effect(part), load, store)))
