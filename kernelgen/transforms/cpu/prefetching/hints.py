"""What all passes that put hints into loops share: which loops they walk, which arrays are worth asking for, where loads read.

A hint changes nothing but time, also past the end of an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import EditLoop, map_loops

PAGE_BYTES = 4096
"""A processor follows rows no further than a page."""

LARGE_BYTES = 1 << 23
"""Of an array that the second cache holds no part of for long."""

Kinds = frozenset[n.LoopKind]
IN_TURN: Kinds = frozenset((n.LoopKind.SERIAL,))
OF_THREADS: Kinds = frozenset((n.LoopKind.PARALLEL,))
OVER_ROWS = IN_TURN | OF_THREADS
OVER_TERMS = OVER_ROWS | {n.LoopKind.UNROLL, n.LoopKind.ROWS}
"""Loops around vector loops. An interleaved one is none of them: squares are printed of a vector loop that stands alone."""


def with_hints(nest: n.Nest, kinds: Kinds, ask: EditLoop) -> n.Nest:
    """The ``nest`` whose loops of these ``kinds`` are what ``ask`` makes of them: the walk of all passes that put hints into
    loops, which ask for no loop's kind themselves.
    """
    return replace(nest, body=map_loops(nest.body, kinds, ask))


def argument_names(nest: n.Nest) -> frozenset[str]:
    """The names of the inputs of a ``nest``."""
    return frozenset(buffer.name for buffer in nest.buffers if buffer.space is n.Space.INPUT)


def large_arguments(nest: n.Nest) -> frozenset[str]:
    """The names of the inputs of a ``nest`` that no cache holds."""
    return frozenset(buffer.name for buffer in nest.buffers if buffer.space is n.Space.INPUT and is_large(buffer))


def is_large(buffer: n.Buffer) -> bool:
    """Whether no cache holds much of an array for long."""
    known = [extent for extent in buffer.shape if isinstance(extent, int)]
    return len(known) == len(buffer.shape) and prod(known) * buffer.dtype.itemsize >= LARGE_BYTES


def only_sums(vector: n.For) -> bool:
    """Whether a loop adds up what it reads, several rows at once: :mod:`kernelgen.transforms.cpu.prefetching.summed_rows`."""
    return all(isinstance(part, n.Let | n.Accumulate) for part in vector.body.statements)


def flat_place(load: n.Load) -> n.Index:
    """Which element of its buffer a load reads, counted from the first."""
    return flat(load.index, load.buffer)


def flat(index: Sequence[n.Index], buffer: n.Buffer) -> n.Index:
    """Which element of a ``buffer`` is at an index, counted from the first."""
    total: n.Index = n.Num(0)
    for place, extent in zip(index, buffer.shape, strict=True):
        total = ix.add(ix.multiply(total, ix.from_dim(extent)), place)
    return total
