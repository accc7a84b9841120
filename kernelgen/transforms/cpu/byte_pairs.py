"""Takes two terms at once of sums of products of bytes where an instruction multiplies halves of words, and adds up pairs.

                                                        for i: vector k in 0..K: h[i, k] = u16(a[i, k])
    for k in 0..K:                                      for p in 0..K / 2:
      vector j:                                           vector j:
        s[i, j] += i32(a[i, k]) * i32(b[k, j])     ->       s[i, j] += half_dot(h[i, 2 p ..], halves(b[2 p ..., j]))
                                                        for k in K / 2 * 2..K: ...

Bytes become halves of words before such a product: those of rows once for all columns, and two neighbours are one load for
all lanes. Two bytes of each column lie in panels as one number of 16 bits, and one instruction that loads them makes halves of
them: a vector takes one for all rows of a block, beside two for each, a product and a sum. Words of four bytes
(:mod:`kernelgen.transforms.cpu.byte_words`) would be taken apart for each block by masks and shifts.

Legality. Halves hold what bytes do, ``{ a[x] -> h[x] }`` for all of ``a``: what the nest stores into a buffer of its own it
stores there, and reads as a byte elsewhere. What others gave is copied in front of the first statement that reads it, which
does not write it, nor does one behind, so that ``h[x] = a[x]`` in all of them. The two loops over terms run
``{ k : k < 2 (K / 2) }`` and the rest, and a reduction may take its terms in any order. Two products of bytes fit int32, and
sums are exact modulo 2^32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import (
    loads_of,
    map_blocks,
    map_expressions,
    map_statements,
    nested,
    statements,
    stored_buffers,
)
from kernelgen.tensor.dtypes import INT32, UINT8, UINT16, UINT32, DType
from kernelgen.transforms.cpu.byte_words import at_term, by_several, cast

TERMS = 2
"""Of a pair."""


def byte_pairs(nest: n.Nest, adds_pairs: bool) -> n.Nest:
    """The nest with such sums by pairs, where one instruction ``adds_pairs`` of products and none four products of bytes."""
    if not adds_pairs:
        return nest
    rows = _Rows(frozenset(part.buffer for part in statements(nest.body) if isinstance(part, n.Accumulate)))
    parts: list[n.Statement] = []
    for position, part in enumerate(nest.body.statements):
        rows.written = frozenset[str]().union(*map(stored_buffers, nest.body.statements[position:]))
        made = map_blocks(n.Block((part,)), lambda block: by_several(block, TERMS, rows.dot))
        rows.read |= {load.buffer for each in statements(made) for load in loads_of(each)}
        parts += [*rows.copied(), *made.statements]
    kept = tuple(buffer for buffer in nest.buffers if buffer not in rows.own)
    body = _as_halves(n.Block(tuple(parts)), rows.own)
    return replace(nest, body=body, buffers=(*kept, *rows.own.values(), *rows.copies))


@dataclass
class _Rows:
    """The halves of words of buffers of bytes that were asked for: what the nest makes itself is made as such, others have
    ``copies``.

    ``summed`` are buffers that are accumulated into, ``written`` names what this statement or one behind it writes, ``read`` is
    what those before and this one read.
    """

    summed: frozenset[n.Buffer]
    written: frozenset[str] = frozenset()
    read: set[n.Buffer] = field(default_factory=set[n.Buffer])
    asked: dict[n.Buffer, n.Buffer] = field(default_factory=dict[n.Buffer, n.Buffer])
    copies: list[n.Buffer] = field(default_factory=list[n.Buffer])

    @property
    def own(self) -> dict[n.Buffer, n.Buffer]:
        """Those that the nest makes."""
        return {rows: halves for rows, halves in self.asked.items() if _is_own(rows) and halves in self.read}

    def dot(self, unsigned: n.Load, signed: n.Load, terms: n.For) -> n.Expr | None:
        """Of pairs; None where two terms are no neighbours, or rows cannot be had as halves."""
        rows = unsigned.buffer
        is_fixed = rows not in self.summed if _is_own(rows) else rows.name not in self.written
        if not is_fixed or not ix.lies_along(unsigned, terms.var):
            return None
        halves = self.asked.setdefault(rows, n.Buffer(f"{rows.name}_halves", UINT16, rows.shape, n.Space.WORKSPACE))
        left = cast(_joined(n.Load(halves, unsigned.index), terms, UINT16, UINT32), INT32)
        right = n.Call("byte_halves", (_joined(signed, terms, UINT8, UINT16),), INT32)
        return n.Call("half_dot", (left, right), INT32)

    def copied(self) -> Iterator[n.Statement]:
        """What makes the copies that are read and were not made yet."""
        for rows, halves in self.asked.items():
            if not _is_own(rows) and halves in self.read and halves not in self.copies:
                yield _copy(rows, halves, len(self.copies))
                self.copies.append(halves)


def _is_own(rows: n.Buffer) -> bool:
    return rows.space is n.Space.WORKSPACE


def _as_halves(body: n.Block, own: Mapping[n.Buffer, n.Buffer]) -> n.Block:
    """The body that keeps the bytes of these buffers in others, as halves of words."""

    def loaded(expr: n.Expr) -> n.Expr:
        if isinstance(expr, n.Load) and expr.buffer in own:
            return cast(n.Load(own[expr.buffer], expr.index), UINT8)
        return expr

    def stored(part: n.Statement) -> n.Statement:
        if isinstance(part, n.Store) and part.buffer in own:
            return n.Store(own[part.buffer], part.index, cast(part.value, UINT16))
        return part

    return map_statements(map_expressions(body, loaded), stored)


def _joined(part: n.Load, terms: n.For, narrow: DType, wide: DType) -> n.Expr:
    """A number of two halves without signs: the ``part`` of the first term of a pair is the lower one."""
    low, high = (cast(cast(at_term(part, terms, TERMS, place), narrow), wide) for place in range(TERMS))
    above = n.Call("mul", (high, n.Literal(1 << narrow.bits, wide)), wide)
    return n.Call("add", (above, low), wide)


def _copy(rows: n.Buffer, halves: n.Buffer, number: int) -> n.Statement:
    """The loops that copy all ``rows`` into ``halves``."""
    last = len(rows.shape) - 1
    kinds = {0: n.LoopKind.PARALLEL} | {last: n.LoopKind.VECTOR}
    loops = [
        n.For(f"half{number}_{dim}", n.Num(0), ix.from_dim(extent), n.Block(), kinds.get(dim, n.LoopKind.SERIAL))
        for dim, extent in enumerate(rows.shape)
    ]
    place = tuple(n.Var(loop.var) for loop in loops)
    store = n.Store(halves, place, cast(n.Load(rows, place), UINT16))
    return nested(loops, n.Block((store,))).statements[0]
