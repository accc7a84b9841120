"""Asks for the next panel of prepared constants while this one is computed with.

    for j0: for i in 0..M step 8:                    for j0: for i in 0..M step 8:
      for k: vector j: r[j] += a * p[j0, k, j]   ->    for k:
                                                         prefetch p[j0 + 1, ...]     a share of it in each turn
                                                         vector j: r[j] += a * p[j0, k, j]

All turns of the loops that read a panel ask for an equal share of the next one, which then lies in the second cache when its
turn comes: memory works while the processor computes. Where the number of turns is a symbol, the first two ask for all of it.
A panel that is read only once is a stream, or several, of which each turn asks for what lies a fixed distance ahead. It asks
for it into the second cache, which waits for more lines at a time than the first one: 25 to 31 GB/s in place of 18 to 23 on one
core of Zen 4. Asking changes nothing but time, also past the end of an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from kernelgen.machines.cpu import CPU
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of, statements, vector_loop_of
from kernelgen.tensor.dtypes import INT32
from kernelgen.transforms.cpu.prefetching.hints import flat

AHEAD_BYTES = 8192
"""Of all streams together that are asked for ahead of their reads. Measured on Zen 4, of eight streams: 1024 or 2048 of each
are alike, 512 is slower."""

CACHE = 2
"""The cache that what is asked for is to be in."""

FEW_TURNS = 2
"""Of the rows, below which a panel counts as a stream."""

FIRST_TURNS = 2
"""So many turns ask for all of the next panel where their number is not known; later ones ask for the same lines."""


def prefetch(nest: n.Nest, words_ahead: int) -> n.Nest:
    """The nest with such hints in the innermost loops of sums; of one stream of words of bytes ``words_ahead`` bytes ahead."""
    if nest.preparation is None:
        return nest
    names = frozenset(b.name for b in nest.preparation.buffers if b.space is n.Space.OUTPUT)
    return replace(nest, body=_Asking(names, words_ahead).block(nest.body, ()))


@dataclass(frozen=True)
class _Asking:
    """For panels in buffers of these ``names``."""

    names: frozenset[str]
    words_ahead: int

    def block(self, block: n.Block, around: tuple[n.For, ...]) -> n.Block:
        return n.Block(tuple(self.statement(part, around) for part in block.statements))

    def statement(self, part: n.Statement, around: tuple[n.For, ...]) -> n.Statement:
        if not isinstance(part, n.For) or part.kind is n.LoopKind.INTERLEAVE:  # which holds no hints
            return part
        vector = vector_loop_of(part.body, before=(n.Let, n.Accumulate))  # sums of what its columns share
        panel = None if vector is None else _panel_of(vector, (*around, part), self.names)
        if panel is None:
            return replace(part, body=self.block(part.body, (*around, part)))
        hints = tuple(n.Prefetch(panel.buffer, place, CACHE) for place in panel.places(self.words_ahead))
        return replace(part, body=n.Block((*hints, *part.body.statements)))


@dataclass(frozen=True)
class _Panel:
    """A panel that is read in ``sums``, which lie in loops over ``rows``; its terms are dims from the ``first`` one on.

    ``streams`` are the places of the panels that are read side by side, of which it is the first.
    """

    buffer: n.Buffer
    index: tuple[n.Index, ...]
    first: int
    streams: tuple[tuple[n.Index, ...], ...]
    rows: tuple[n.For, ...]
    sums: tuple[n.For, ...]

    def places(self, words_ahead: int) -> list[n.Index]:
        """The elements that one turn asks for, counted from the array's first."""
        lanes, line = self._extent(-1), CPU.line_bytes // self.buffer.dtype.itemsize
        turns = self._turns()
        if turns < FEW_TURNS:
            room = words_ahead if self.buffer.dtype == INT32 else AHEAD_BYTES
            ahead = room // (len(self.streams) * CPU.line_bytes) * line
            heres = [flat((*stream, *self.index[self.first : -1], n.Num(0)), self.buffer) for stream in self.streams]
            lines = range(ahead, ahead + lanes * self.sums[-1].step, line)
            return [ix.add(here, n.Num(at)) for here in heres for at in lines]
        share = 1 << (turns.bit_length() - 1)
        each = -(-lanes // share)
        *outer, own = self.index[: self.first]
        start = flat((*outer, ix.add(own, n.Num(1)), *(n.Num(0) for _ in self.index[self.first :])), self.buffer)
        begin = self._begin(self._terms() * lanes // turns, turns)
        term: n.Index = n.Num(0)
        for loop, extent in zip(self.sums, self.buffer.shape[self.first : -1], strict=True):
            term = ix.add(ix.multiply(term, ix.from_dim(extent)), ix.subtract(n.Var(loop.var), loop.lower))
        place = ix.add(ix.add(start, begin), ix.multiply(term, n.Num(each)))
        return [ix.add(place, n.Num(at)) for at in range(0, each * self.sums[-1].step, line)]

    @property
    def is_counted(self) -> bool:
        """Whether all its loops over rows have known numbers of turns."""
        return self._known_turns() is not None

    def _turns(self) -> int:
        if not self.rows:
            return 1
        known = self._known_turns()
        return FIRST_TURNS if known is None else prod(known)

    def _known_turns(self) -> list[int] | None:
        """Of each loop over rows; None where one of them is not known."""
        lengths = [ix.subtract(row.upper, row.lower) for row in self.rows]
        known = [length.value for length in lengths if isinstance(length, n.Num)]
        if len(known) < len(lengths):
            return None
        return [-(-length // row.step) for row, length in zip(self.rows, known, strict=True)]

    def _begin(self, share: int, turns: int) -> n.Index:
        """Where the ``share`` of this one of the ``turns`` begins: that of the last one from there on where more may follow.

        Row by row, so that it is a sum of products: blocks of 6 rows would be counted by a division in each term of the sums.
        """
        known = self._known_turns()
        if known is None:
            (row,) = self.rows
            passed = ix.minimum(ix.subtract(n.Var(row.var), row.lower), n.Num((turns - 1) * row.step))
            return ix.multiply(passed, n.Num(share // row.step))
        total: n.Index = n.Num(0)
        for row, count in zip(reversed(self.rows), reversed(known), strict=True):
            passed = ix.subtract(n.Var(row.var), row.lower)
            total = ix.add(ix.multiply(passed, n.Num(share // row.step)), total)
            share *= count
        return total

    def _terms(self) -> int:
        return prod(self._extent(dim) for dim in range(self.first, len(self.index) - 1))

    def _extent(self, dim: int) -> int:
        found = self.buffer.shape[dim]
        assert isinstance(found, int)
        return found


def _panel_of(vector: n.For, around: tuple[n.For, ...], names: frozenset[str]) -> _Panel | None:
    """The panel of panels, terms and columns that a vector loop reads; None where there is none.

    Panels of several products, and groups of terms, as of windows, have a dim of their own each.
    """
    found = [load for part in statements(vector.body) for load in loads_of(part) if load.buffer.name in names]
    places = _PlacesOf(found[0].index, around) if found else None
    first = (
        None if places is None else next((dim for dim in range(1, len(found[0].index) - 1) if places.ends(dim)), None)
    )
    if places is None or first is None:
        return None
    terms = len(places.index) - 1 - first
    # What rows that run together ask for, each would ask for again.
    rows = tuple(loop for loop in around[places.along(0, first)[-1] + 1 : -terms] if loop.kind is not n.LoopKind.ROWS)
    streams = dict.fromkeys(load.index[:first] for load in found if load.buffer == found[0].buffer)
    panel = _Panel(found[0].buffer, places.index, first, tuple(streams), rows, around[-terms:])
    return panel if len(rows) < 2 or panel.is_counted else None


@dataclass(frozen=True)
class _PlacesOf:
    """Where a load is of the loops around it."""

    index: tuple[n.Index, ...]
    around: tuple[n.For, ...]

    def along(self, first: int, end: int) -> list[int]:
        """The loops that decide these dims, outer ones first."""
        dims = self.index[first:end]
        return [k for k, loop in enumerate(self.around) if any(loop.var in ix.variables(each) for each in dims)]

    def ends(self, first: int) -> bool:
        """Whether the innermost loops are one for each of the dims from the ``first`` one on, and other loops decide panels."""
        terms = len(self.index) - 1 - first
        innermost = [*range(len(self.around) - terms, len(self.around))]
        return bool(self.along(0, first)) and self._from_starts(innermost).along(first, -1) == innermost

    def _from_starts(self, loops: Sequence[int]) -> _PlacesOf:
        """The same of iterations counted from where these loops start: pieces of terms begin where others end."""
        starts = {self.around[k].var: self.around[k].lower for k in loops}
        counted = {var: ix.add(start, n.Var(var)) for var, start in starts.items()}
        return replace(self, index=tuple(ix.substitute(each, counted) for each in self.index))
