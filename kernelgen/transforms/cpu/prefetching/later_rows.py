"""Asks for a later row of an argument while loops compute what they have read of this one.

    for i:                                        for i:
      vector j: s += x[i, j]                        vector j: s += x[i, j]
      vector j: y[i, j] = x[i, j] / s        ->     vector j: prefetch x[i + 1, j + 1024]; y[i, j] = x[i, j] / s

Loops over a row that was read find it in a cache, so that memory stands still; then the next row is waited for while nothing
is computed. Each of these loops asks for one argument that a loop before it was the first to read. More than one would keep all
the lines waiting that a core can wait for, among them those that its loads need: such arguments are left to what a processor
asks for on its own. The second cache takes what comes where the first one is full of this row; short rows go to the first
one. It is asked for a page behind the same place of the next row: a short row alone is computed in less time than memory takes.
Asking changes nothing but time, also past the end of an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of, statements, without_body
from kernelgen.transforms.cpu.jam_stencils import polynomial
from kernelgen.transforms.cpu.prefetching.hints import OVER_ROWS, PAGE_BYTES, flat_place, large_arguments, with_hints

SHORT_BYTES = 2048
"""Of a row that the first cache holds beside what is made of it and the rows behind it."""


def prefetch_later_rows(nest: n.Nest) -> n.Nest:
    """The nest with such hints in its loops over rows."""
    arguments = large_arguments(nest)
    return with_hints(nest, OVER_ROWS, lambda rows, _: _asking(rows, arguments))


def _asking(rows: n.For, arguments: frozenset[str]) -> n.For:
    """The loop, with hints where its vector loops read a row again."""
    hints = _hints(rows, _loops_over_a_row(rows), arguments)
    parts = (_with_hint(part, hints.get(position)) for position, part in enumerate(rows.body.statements))
    return replace(rows, body=n.Block(tuple(parts))) if hints else rows


def _with_hint(part: n.Statement, hint: n.Prefetch | None) -> n.Statement:
    if hint is None or not isinstance(part, n.For):
        return part
    return replace(part, body=n.Block((hint, *part.body.statements)))


def _loops_over_a_row(rows: n.For) -> Mapping[int, n.For]:
    """The vector loops of a turn that have the iterations of the first one, by their positions."""
    parts = enumerate(rows.body.statements)
    loops = {at: part for at, part in parts if isinstance(part, n.For) and part.kind is n.LoopKind.VECTOR}
    first = next(map(without_body, loops.values()), None)
    return {at: loop for at, loop in loops.items() if without_body(loop) == first}


def _hints(rows: n.For, loops: Mapping[int, n.For], arguments: frozenset[str]) -> Mapping[int, n.Prefetch]:
    """What is asked for, by the position of the loop that asks."""
    hints, seen = dict[int, n.Prefetch](), set[object]()
    for at, loop in loops.items():
        for load in (load for part in statements(loop) for load in loads_of(part) if load.buffer.name in arguments):
            row = load.buffer.name, tuple(map(polynomial, load.index[:-1]))
            step = ix.stride(flat_place(load), rows.var)
            free = next((other for other in loops if other > at and other not in hints), None)
            if free is not None and step and row not in seen and ix.lies_along(load, loop.var):
                seen.add(row)
                hints[free] = _later(load, step * rows.step, _level(load, loop))
    return hints


def _level(load: n.Load, row: n.For) -> int:
    """The cache in which a later row is to be."""
    length = ix.subtract(row.upper, row.lower)
    return 1 if isinstance(length, n.Num) and length.value * load.buffer.dtype.itemsize <= SHORT_BYTES else 2


def _later(load: n.Load, step: int, level: int) -> n.Prefetch:
    """The hint a page behind what is loaded in the next row, where rows are ``step`` elements apart."""
    ahead = step + PAGE_BYTES // load.buffer.dtype.itemsize
    return n.Prefetch(load.buffer, ix.add(flat_place(load), n.Num(ahead)), level)
