"""Reads the vectors of a panel side by side where each element of it is read once: as many streams hide each other's waits.

    for j0 in 0..N step 128:                                for j0 in 0..N step 128:
      for j1 in j0..j0 + 128 step 16:                         vector j in 0..16: y[j0 + j] = 0; ...
        vector j in j1..j1 + 16: y[j] = 0                     for k:
        for k:                                          ->      vector j in 0..16:
          vector j in j1..j1 + 16:                                y[j0 + j] += x[k] * p[j0 / 128, 0, k, j]
            y[j] += x[k] * p[.., (j1 - j0) / 16, k, j - j1]       y[j0 + 16 + j] += x[k] * p[j0 / 128, 1, k, j]; ...

Memory bounds such a product. A processor follows a stream to the end of a page, and looks up the next page when it gets there.
Measured on an AMD EPYC (Zen 4) with pages of 4 KB, one row times 768 x 3072: one stream 12 to 20 GB/s, eight 21 to 28.

Legality. The loop runs over the tile of the loop around it, and its iterations store into columns of their own, which nobody
reads inside: they may run in any order, so that each of their statements may run for all of them before the next one, and a
loop that is the same for all of them is one loop (Allen and Kennedy's unroll-and-jam).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import map_indices, renamed, substituted
from kernelgen.nest.walk import loads_of, statements, stored_buffers
from kernelgen.transforms.cpu.jam_stencils import polynomial


def jam_panels(nest: n.Nest) -> n.Nest:
    """The nest with such loops over vectors of prepared panels jammed."""
    return nest if nest.preparation is None else replace(nest, body=_block(nest.body, None, nest.panels))


def _block(block: n.Block, around: n.For | None, panels: frozenset[str]) -> n.Block:
    parts: list[n.Statement] = []
    for part in block.statements:
        if isinstance(part, n.For):
            jammed = _jammed(part, around, panels)
            parts += [replace(part, body=_block(part.body, part, panels))] if jammed is None else jammed
        else:
            parts.append(part)
    return n.Block(tuple(parts))


def _jammed(loop: n.For, tile: n.For | None, panels: frozenset[str]) -> list[n.Statement] | None:
    """The statements of a ``loop`` over all of a ``tile``, each for all iterations; None where it is no such loop."""
    length = ix.subtract(loop.upper, loop.lower)
    is_whole = tile is not None and loop.lower == n.Var(tile.var) and length == n.Num(tile.step)
    if not is_whole or loop.step == 1 or loop.kind is not n.LoopKind.SERIAL or not _reads(loop, panels):
        return None
    stored = stored_buffers(loop)
    if any(load.buffer.name in stored for part in statements(loop) for load in loads_of(part)):
        return None
    if not all(_stays_apart(part, loop) for part in loop.body.statements):
        return None
    assert isinstance(length, n.Num)
    firsts = range(0, length.value, loop.step)
    return [each for part in loop.body.statements for each in _for_all(part, loop, firsts)]


def _reads(loop: n.For, panels: frozenset[str]) -> bool:
    return any(load.buffer.name in panels for part in statements(loop) for load in loads_of(part))


def _stays_apart(part: n.Statement, loop: n.For) -> bool:
    """Whether each iteration of the ``loop`` stores into columns of its own, in vector loops, and other loops are the same."""
    if not isinstance(part, n.For):
        return isinstance(part, n.Let) and loop.var not in ix.variables_in(part.value)
    if part.kind is not n.LoopKind.VECTOR:
        is_same = loop.var not in ix.variables(part.lower) | ix.variables(part.upper)
        return is_same and all(_stays_apart(each, loop) for each in part.body.statements)
    is_own = part.lower == n.Var(loop.var) and ix.subtract(part.upper, part.lower) == n.Num(loop.step)
    return is_own and part.step == 1 and all(_is_own(each, part.var, loop.var) for each in part.body.statements)


def _is_own(part: n.Statement, column: str, first: str) -> bool:
    """Whether it binds, or stores into the column."""
    if isinstance(part, n.Store | n.Accumulate):
        steps = [ix.stride(each, column) for each in part.index]
        return steps.count(1) == 1 and steps.count(0) == len(steps) - 1 and not _names(part.index, first)
    return isinstance(part, n.Let)


def _names(index: tuple[n.Index, ...], variable: str) -> bool:
    return any(variable in ix.variables(each) for each in index)


def _for_all(part: n.Statement, loop: n.For, firsts: Sequence[int]) -> Iterator[n.Statement]:
    """A statement of the ``loop`` for all its iterations, whose columns begin so far behind those of the first one."""
    if not isinstance(part, n.For):
        yield part
    elif part.kind is n.LoopKind.VECTOR:
        for first in firsts:
            yield replace(part, lower=n.Num(0), upper=n.Num(loop.step), body=_copy(part, loop, first))
    else:
        inner = [each for one in part.body.statements for each in _for_all(one, loop, firsts)]
        yield replace(part, body=n.Block(tuple(_as_one(inner))))


def _as_one(parts: Sequence[n.Statement]) -> Iterator[n.Statement]:
    """The same with loops of one header that follow each other as one."""
    for _, group in groupby(parts, lambda part: replace(part, body=n.Block()) if isinstance(part, n.For) else part):
        first, *others = group
        if isinstance(first, n.For):
            bodies = [each.body for each in (first, *others) if isinstance(each, n.For)]
            first = replace(first, body=n.Block(tuple(each for body in bodies for each in body.statements)))
        yield first


def _copy(vector: n.For, loop: n.For, first: int) -> n.Block:
    """The body of the vector loop, counted from 0, for the columns that begin so far behind the first ones."""
    counted = substituted(vector.body, {vector.var: ix.add(n.Var(loop.var), n.Var(vector.var))})
    here = substituted(counted, {loop.var: ix.add(loop.lower, n.Num(first))})
    return renamed(map_indices(here, polynomial), f"_{first}" if first else "")
