"""Asks for the next tile of what is read across while this one is transposed.

    for i0 step 64: for j0 step 64:                        for i0 step 64: for j0 step 64:
      interleave i in i0..i0 + 64:                           for j in j0..j0 + 64: prefetch x[j, i0 + 64], x[j, i0 + 80], ...
        vector j in j0..j0 + 64: y[i, j] = f(x[j, i])  ->    interleave i in i0..i0 + 64:
                                                               vector j in j0..j0 + 64: y[i, j] = f(x[j, i])

A tile reads a few lines of each of many rows, which lie pages apart: a processor follows none of them. What a cache holds
anyway is not asked for. Asking changes nothing but time, also past the end of an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from kernelgen.machines.cpu import CPU
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of, of_statements, statements, with_body
from kernelgen.transforms.cpu.prefetching.hints import OVER_TERMS, flat_place, with_hints

LEAST_BYTES = 1 << 20
"""Of an argument that the second cache of usual processors does not hold."""

LEVEL = 1
"""The cache in which the next tile is to be."""


def prefetch_transposed(nest: n.Nest) -> n.Nest:
    """The nest with such hints before the loops that transpose."""
    arguments = frozenset(buffer.name for buffer in nest.buffers if buffer.space is n.Space.INPUT and _is_large(buffer))
    return with_hints(nest, OVER_TERMS, lambda loop, around: _ahead(loop, (*around, loop), arguments))


def _is_large(buffer: n.Buffer) -> bool:
    known = [extent for extent in buffer.shape if isinstance(extent, int)]
    return len(known) < len(buffer.shape) or prod(known) * buffer.dtype.itemsize >= LEAST_BYTES


def _ahead(loop: n.For, around: tuple[n.For, ...], arguments: frozenset[str]) -> n.For:
    """A loop with hints before those of its loops that transpose; ``around`` ends with the loop itself."""
    parts = [each for part in loop.body.statements for each in (*_asking(part, around, arguments), part)]
    return with_body(loop, of_statements(loop.body, parts))


def _asking(part: n.Statement, around: tuple[n.For, ...], arguments: frozenset[str]) -> Iterator[n.For]:
    """The loops over rows that ask for what the tile behind this one reads, one for each argument that is read across."""
    if not isinstance(part, n.For) or part.kind is not n.LoopKind.INTERLEAVE:
        return
    tile = next((each for each in around if part.lower == n.Var(each.var)), None)
    (vector, *others) = part.body.statements
    if tile is None or others or not isinstance(vector, n.For):
        return
    seen = set[n.Index]()
    for load in (load for each in statements(vector.body) for load in loads_of(each) if load.buffer.name in arguments):
        place = flat_place(load)
        if ix.stride(place, part.var) == 1 and place not in seen:
            seen.add(place)
            row = f"{vector.var}_row{len(seen)}"
            begin = ix.substitute(place, {part.var: ix.add(part.lower, n.Num(tile.step)), vector.var: n.Var(row)})
            lines = range(0, tile.step, CPU.line_bytes // load.buffer.dtype.itemsize)
            hints = tuple(n.Prefetch(load.buffer, ix.add(begin, n.Num(line)), LEVEL) for line in lines)
            yield replace(vector, var=row, kind=n.LoopKind.SERIAL, body=n.Block(hints))
