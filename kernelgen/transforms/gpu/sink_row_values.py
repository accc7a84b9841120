"""Moves what a row computes once to where its columns need it, so that every column can have a thread of its own.

    block i:                                    block i: block j:
      m[i] = min(a[i] * 7, 29125)       ->        let v = min(a[i] * 7, 29125)
      block j: y[i, j] = x[i, j] < m[i]           y[i, j] = x[i, j] < v

Computing it again for every column costs a few cycles and loads that neighbours share; a loop over columns that stands
behind something else has one thread alone, or the threads of one block.

Legality: the temporary is stored once, and loaded inside the loop alone, with the same index, which the loop's variable does
not move; nothing that its value is made of is written inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Block, Expr, For, Let, Load, LoopKind, Nest, Ref, Space, Statement, Store
from kernelgen.nest.walk import accesses, accesses_by_buffer, loads_of, map_expressions, stored_buffers
from kernelgen.transforms.gpu.fuse_prologue import MAX_LOADS, is_cheap


def sink(nest: Nest) -> Nest:
    """The nest, before it is cut into grids, with such loops directly inside each other."""
    body = Block(tuple(_sunk(part, nest) for part in nest.body.statements))
    gone = accesses_by_buffer(nest.body).keys() - accesses_by_buffer(body).keys()
    return replace(nest, buffers=tuple(buffer for buffer in nest.buffers if buffer.name not in gone), body=body)


def is_light(parts: Sequence[Statement]) -> bool:
    """Whether the statements bind and store temporaries alone, at little cost."""
    stored = all(isinstance(part, Let | Store) for part in parts) and all(
        part.buffer.space is Space.WORKSPACE for part in parts if isinstance(part, Store)
    )
    found = dict.fromkeys(load for part in parts for load in loads_of(part))
    by_data = any(ix.is_by_data(*load.index) for load in found)
    values = [part.value for part in parts if isinstance(part, Let | Store)]
    return stored and not by_data and len(found) <= MAX_LOADS and all(map(is_cheap, values))


def _sunk(part: Statement, nest: Nest) -> Statement:
    """The block loop with its inner block loops directly inside."""
    if not isinstance(part, For) or part.kind is not LoopKind.BLOCK or not part.body.statements:
        return part
    *before, last = part.body.statements
    if not before:
        return replace(part, body=Block((_sunk(last, nest),)))
    if not isinstance(last, For) or last.kind is not LoopKind.BLOCK or not _may_sink(before, last, nest):
        return part
    values = {s.buffer.name: (f"{s.buffer.name}_sunk", s.value) for s in before if isinstance(s, Store)}

    def read(expr: Expr) -> Expr:
        is_sunk = isinstance(expr, Load) and expr.buffer.name in values
        return Ref(values[expr.buffer.name][0], expr.dtype) if is_sunk and isinstance(expr, Load) else expr

    bindings = (Let(values[s.buffer.name][0], s.value) if isinstance(s, Store) else s for s in before)
    inner = Block(tuple(map_expressions(each, read) for each in (*bindings, *last.body.statements)))
    return replace(part, body=Block((_sunk(replace(last, body=inner), nest),)))


def _may_sink(before: Sequence[Statement], loop: For, nest: Nest) -> bool:
    made = {part.buffer.name for part in before if isinstance(part, Store)}
    sources = {load.buffer.name for part in before for load in loads_of(part)} - made
    return (
        is_light(before)
        and not (sources | made) & stored_buffers(loop.body)
        and all(_is_used_behind(place, before, loop, nest) for place in range(len(before)))
    )


def _is_used_behind(place: int, before: Sequence[Statement], loop: For, nest: Nest) -> bool:
    """Whether what a statement stores is loaded behind it alone, with the same index."""
    store = before[place]
    if not isinstance(store, Store):
        return True
    name = store.buffer.name
    loaded = [index for part in (*before[place + 1 :], loop) for _, index in accesses(part, name)]
    return len(loaded) + 1 == sum(1 for _ in accesses(nest.body, name)) and set(loaded) <= {store.index}
