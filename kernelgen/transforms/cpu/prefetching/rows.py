"""Asks for what a tile reads of an argument some lines before it is read.

    parallel for b:                              parallel for b:
      for i: vector j: t[i, j] = f(x[i, j])  ->    for i: vector j: prefetch x[i, j + 256]; t[i, j] = f(x[i, j])
      for i: vector j: y[i, j] = g(t[i, j])        for i: vector j: y[i, j] = g(t[i, j])

Loops over tiles read memory in some of their loops and compute in others. A processor follows rows no further than a page, so
that each page of a row begins with lines that nobody asked for: each turn asks for lines some way further on, about as far as
memory gets while one of them is waited for. Asking changes nothing but time, also past the end of an array.
Where all loops of a tile read arguments memory is busy throughout and nothing is asked, nor where there is one loop, unless
rows come from arrays that no cache holds and lie behind one another: on its own a processor keeps too few lines on their way.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.cost import arithmetic_cost
from kernelgen.nest.walk import loads_of, statements, vector_loop_of
from kernelgen.transforms.cpu.jam_stencils import polynomial
from kernelgen.transforms.cpu.prefetching.hints import (
    OF_THREADS,
    OVER_ROWS,
    PAGE_BYTES,
    argument_names,
    flat_place,
    is_large,
    only_sums,
    with_hints,
)

AHEAD_BYTES = 1024
"""Of each argument. One core of a Xeon that reads 17 GB/s, share of a copy's speed with 1024, 2048 and 4096: cross entropy 97,
85 and 69 %, bias and GELU 90, 95 and 69, softmax 90, 81 and 73."""

LONG_NANOSECONDS = 0.5
"""Of :func:`arithmetic_cost` for an element: an exponential function, or ten sums. Memory takes as long for what is read."""


def prefetch_rows(nest: n.Nest) -> n.Nest:
    """The nest with such hints in the vector loops of tiles, and in those between large arrays."""
    arguments = argument_names(nest)
    tiles = with_hints(nest, OF_THREADS, lambda part, _: _tiles(part, arguments))
    return with_hints(tiles, OVER_ROWS, lambda part, _: _alone(part, arguments))


def _tiles(part: n.For, arguments: frozenset[str]) -> n.For:
    """A parallel loop with hints in those of its loops over rows that read arguments, where others do not."""
    hinted = tuple(_rows(each, arguments) for each in part.body.statements)
    loops = [each for each in part.body.statements if isinstance(each, n.For)]
    same = sum(each is made for each, made in zip(part.body.statements, hinted, strict=True) if isinstance(each, n.For))
    return replace(part, body=n.Block(hinted)) if 0 < same < len(loops) else part


def _alone(part: n.For, arguments: frozenset[str]) -> n.For:
    """A loop over rows with hints for its large arguments, where there is one loop, which asks for nothing yet."""
    vector = vector_loop_of(part.body, (n.Let, n.Alloc, n.Store))
    if vector is None or _asks(vector):
        return part
    loads = (load for each in statements(vector.body) for load in loads_of(each) if is_large(load.buffer))
    large = {load.buffer.name for load in loads if _follow(load, part.var, vector)}
    return _asking(part, vector, arguments & large)


def _asks(vector: n.For) -> bool:
    """Whether the loop has hints already."""
    return any(isinstance(each, n.Prefetch) for each in vector.body.statements)


def _computes(vector: n.For) -> bool:
    """Whether the processor computes for about as long as memory takes, so that both are to be busy at once."""
    values = (each.value for each in statements(vector.body) if isinstance(each, n.Let | n.Store | n.Accumulate))
    return sum(map(arithmetic_cost, values)) >= LONG_NANOSECONDS


def _follow(load: n.Load, row: str, vector: n.For) -> bool:
    """Whether a row begins less than a page behind the end of the one before: what lies a page further on is soon read."""
    step, length = _step(load, row, vector), ix.subtract(vector.upper, vector.lower)
    known = length.value if isinstance(length, n.Num) else 0
    return step is not None and (abs(step) - known) * load.buffer.dtype.itemsize < PAGE_BYTES


def _rows(part: n.Statement, arguments: frozenset[str]) -> n.Statement:
    """A loop over rows with hints in its vector loop; the same object where that asks already, only sums, or
    reads no argument along rows.
    """
    if not isinstance(part, n.For) or part.kind is not n.LoopKind.SERIAL:
        return part
    vector = vector_loop_of(part.body, before=())
    if vector is None or _asks(vector) or (only_sums(vector) and not _computes(vector)):
        return part
    return _asking(part, vector, arguments)


def _asking(rows: n.For, vector: n.For, arguments: frozenset[str]) -> n.For:
    hints = tuple(_hints(vector, rows.var, arguments))
    asking = replace(vector, body=n.Block((*hints, *vector.body.statements)))
    return replace(rows, body=n.Block((*rows.body.statements[:-1], asking))) if hints else rows


def _hints(vector: n.For, row: str, arguments: frozenset[str]) -> list[n.Prefetch]:
    """One for each row of an argument that is read along the loop."""
    found: dict[tuple[str, tuple[n.Index, ...]], n.Prefetch] = {}
    for load in (load for part in statements(vector.body) for load in loads_of(part)):
        place = flat_place(load)
        moves = ix.stride(place, vector.var) == 1 and _step(load, row, vector)
        if load.buffer.name in arguments and moves:
            ahead = ix.add(place, n.Num(AHEAD_BYTES // load.buffer.dtype.itemsize))
            row_of = load.buffer.name, tuple(map(polynomial, load.index[:-1]))
            found.setdefault(row_of, n.Prefetch(load.buffer, ahead, 1))
    return list(found.values())


def _step(load: n.Load, row: str, vector: n.For) -> int | None:
    """By how many elements the first one that a row's loop loads moves from row to row; None where that is no constant."""
    return ix.stride(ix.substitute(flat_place(load), {vector.var: vector.lower}), row)
