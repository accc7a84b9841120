"""Multiplies one row by stored weights as integers: the row is fixed point, three digits to a term, each digit a byte.

    for k in 0..K:                                      x = digits and units, once            (row_digits)
      vector j:                                         for p in pieces:
        y[j] += x[k] * (cast(w[k, j]) * s[j])     ->      vector j: d0[j] = start[p, 0]; d1[j] = ...; d2[j] = ...
                                                          for w in words:
                                                            vector j: d0[j] += byte_dot(word(w, j), x[p, 0, w]); ...
                                                          vector j: y[j] += (d0 + 256 d1 + 65536 d2)[j] * unit[p] * s[j]

Converting weights to floats bounds such a product: of 64 bytes, 4 instructions convert and multiply 16 numbers. One instruction
adds four products of bytes to each of 16 sums, so that 64 bytes take one for each digit, and two more for numbers of four bits.

Legality. Sums of products of integers are exact: a digit is at most 128, a weight 255, a piece has 128 terms of bytes or 256 of
four bits, so that all sums fit an int32, that of the lower two digits too. A reduction may take its terms in any order, and the
row is as accurate as floats are (:mod:`kernelgen.transforms.cpu.row_digits`). Weights begin without a sign: what they have too
much, times the digits of a piece, is where its sums start. The row is complete in front of the statement that reads it, and not
written from there on. Terms that fill no word stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import renamed
from kernelgen.nest.walk import nested, stored_buffers
from kernelgen.tensor.dtypes import FLOAT32, INT32, UINT8, UINT32, DType
from kernelgen.transforms.cpu.byte_words import BYTES, cast, word_of
from kernelgen.transforms.cpu.register_blocking import reduction_of
from kernelgen.transforms.cpu.row_digits import (
    DIGITS,
    WORD_SIGNS,
    Digits,
    Row,
    digits_of,
    fills,
    joined,
    term_at,
    times,
)
from kernelgen.transforms.cpu.stored_sums import STEPS, StoredSum, stored_sum

MOST_WORDS = 32
"""Of a piece: sums of more may not fit an int32, and one great term makes fewer others coarse."""

LEAST_WORDS = 2
"""Of a piece: joining its sums takes as long as three words."""

LOW_NIBBLES = 0x0F0F0F0F


def digit_sums(nest: n.Nest, adds_bytes: bool) -> n.Nest:
    """The nest with such sums by digits, where one instruction ``adds_bytes``' products to all of a vector."""
    if not adds_bytes or not nest.constants:
        return nest
    rows = _Rows(nest.constants)
    parts: list[n.Statement] = []
    for position, part in enumerate(nest.body.statements):
        rows.written = frozenset[str]().union(*map(stored_buffers, nest.body.statements[position:]))
        made = rows.block(n.Block((part,)))
        parts += [*rows.taken(), *made.statements]
    return replace(nest, body=n.Block(tuple(parts)), buffers=(*nest.buffers, *rows.made))


@dataclass
class _Rows:
    """The digits of rows by their keys, those that are ``new``, what is ``written`` from here on, and workspaces ``made``.

    Weights are in buffers called ``constants``.
    """

    constants: frozenset[str]
    written: frozenset[str] = frozenset()
    known: dict[object, Digits] = field(default_factory=dict[object, Digits])
    new: list[n.Statement] = field(default_factory=list[n.Statement])
    made: list[n.Buffer] = field(default_factory=list[n.Buffer])
    count: int = 0

    def taken(self) -> list[n.Statement]:
        """What computes the digits that are new, once."""
        found, self.new = self.new, []
        return found

    def block(self, block: n.Block) -> n.Block:
        """The block with such sums by digits."""
        parts: list[n.Statement] = []
        for part in block.statements:
            found = self.sum(part) if isinstance(part, n.For) else None
            if found is not None:
                parts += found
            elif isinstance(part, n.For):
                parts.append(replace(part, body=self.block(part.body)))
            else:
                parts.append(part)
        return n.Block(tuple(parts))

    def sum(self, loop: n.For) -> list[n.Statement] | None:
        """The statements for a sum over all loops from this one on; None for others."""
        around = reduction_of(loop)
        if around is None or not all(_is_counted(each) for each in around[:-1]):
            return None
        *groups, terms, vector = around
        found, words = stored_sum(terms, vector, self.constants), _extent(terms) // BYTES
        if found is None or words < LEAST_WORDS or not self._is_ready(found, around):
            return None
        row = Row(found.rows, terms.var, tuple(groups), max(1, words // MOST_WORDS), min(words, MOST_WORDS))
        self.count += 1
        own = _Sum(found, row, terms, vector, self._digits(row), self.count)
        self.made += [own.total, *own.sums]
        return own.statements()

    def _is_ready(self, found: StoredSum, around: Sequence[n.For]) -> bool:
        """Whether the row is there in front of the whole statement, all of it over loops of the sum, and columns stay."""
        inside, vector = {loop.var for loop in around[:-1]}, around[-1]
        names = {load.buffer.name for load in found.rows}
        is_there = all(load.buffer.space is not n.Space.LOCAL for load in found.rows) and names.isdisjoint(self.written)
        is_own = all(ix.variables(each) <= inside for load in found.rows for each in load.index)
        named = {name for each in (vector.lower, vector.upper, *found.target.index) for name in ix.variables(each)}
        is_fixed = isinstance(ix.subtract(vector.upper, vector.lower), n.Num) and inside.isdisjoint(named)
        return is_there and is_own and is_fixed

    def _digits(self, row: Row) -> Digits:
        if row.key not in self.known:
            number = len(self.known)
            self.known[row.key] = digits_of(row, number)
            self.made += self.known[row.key].buffers
            self.new += fills(row, self.known[row.key], number)
        return self.known[row.key]


def _is_counted(loop: n.For) -> bool:
    return loop.lower == n.Num(0) and isinstance(loop.upper, n.Num) and loop.step == 1


def _extent(loop: n.For) -> int:
    assert isinstance(loop.upper, n.Num), "it is counted"
    return loop.upper.value


@dataclass(frozen=True)
class _Sum:
    """A sum ``found`` in a ``vector`` loop over ``terms``, the ``digits`` of its ``row``, and its ``number`` in the nest."""

    found: StoredSum
    row: Row
    terms: n.For
    vector: n.For
    digits: Digits
    number: int

    def statements(self) -> list[n.Statement]:
        """The sum in a local of its own, pieces of words first, then the terms beside them."""
        zero, added = n.Literal(0.0, FLOAT32), n.Load(self.total, self._here)
        piece = n.For(f"piece{self.number}", n.Num(0), n.Num(self.row.pieces), n.Block())
        inside = n.Block(tuple(self._of_piece(n.Var(piece.var))))
        return [
            self._over_columns(n.Store(self.total, self._here, zero)),
            *nested((*self.row.groups, piece), inside).statements,
            self._over_columns(replace(self.found.target, index=self._counted(self.found.target.index), value=added)),
            *self._rest(),
        ]

    def _of_piece(self, piece: n.Var) -> list[n.Statement]:
        """The sums of a piece by digits, joined, added to the total."""
        outer = (*(n.Var(loop.var) for loop in self.row.groups), piece)
        starts: list[n.Statement] = []
        for digit, each in enumerate(self.sums):
            of_row = n.Load(self.digits.sums, (*outer, n.Num(digit)))
            less = n.Call("mul", (of_row, n.Literal(-self.found.middle, INT32)), INT32)
            starts.append(n.Store(each, self._here, less))
        word = n.For(f"word{self.number}", n.Num(0), n.Num(self.row.words), n.Block())
        vector = self._over_columns(*self._of_word(piece, n.Var(word.var)))
        value = joined([n.Load(each, self._here) for each in self.sums], n.Load(self.digits.unit, outer))
        if self.found.zeros is not None:
            less = times(n.Load(self.digits.total, outer), n.Literal(-1.0, FLOAT32))
            value = n.Call("add", (value, times(ix.substitute_in(self.found.zeros, self._at), less)), FLOAT32)
        scaled = reduce(times, (ix.substitute_in(scale, self._at) for scale in self.found.scales), value)
        return [
            *map(self._over_columns, starts),
            replace(word, body=n.Block((vector,))),
            self._over_columns(n.Accumulate(self.total, self._here, "add", scaled)),
        ]

    def _of_word(self, piece: n.Var, word: n.Var) -> list[n.Statement]:
        """What a word of weights adds to the sums of each digit."""
        name = f"weights{self.number}"
        stored, bound = n.Ref(name, INT32), [n.Let(name, self._weights(piece, word))]
        numbers: list[n.Expr] = [stored]
        if self.found.are_nibbles:
            high = cast(n.Call("floor_div", (cast(stored, UINT32), n.Literal(STEPS, UINT32)), UINT32), INT32)
            for half, value in enumerate((stored, high)):
                part = n.Call("bitwise_and", (value, n.Literal(LOW_NIBBLES, INT32)), INT32)
                bound.append(n.Let(f"{name}_{half}", part))
            numbers = [n.Ref(each.name, INT32) for each in bound[1:]]
        outer = (*(n.Var(loop.var) for loop in self.row.groups), piece)
        dots: list[n.Statement] = []
        for half, weights in enumerate(numbers):
            for digit, each in enumerate(self.sums):
                of_row = n.Load(self.digits.words, (*outer, n.Num(digit), n.Num(half), word))
                dots.append(n.Accumulate(each, self._here, "add", n.Call("byte_dot", (weights, of_row), INT32)))
        return [*bound, *dots]

    def _weights(self, piece: n.Var, word: n.Var) -> n.Expr:
        """Four bytes of weights as they are multiplied, the first at the lowest place: without a sign."""
        found: list[n.Expr] = []
        for place in range(BYTES):
            at = {**self._at, self.terms.var: term_at(piece, word, place, self.row.words)}
            load = n.Load(self.found.stored.buffer, tuple(ix.substitute(each, at) for each in self.found.stored.index))
            found.append(cast(cast(load, UINT8), UINT32))
        total, signed = word_of(found), self.found.stored.dtype != UINT8
        return cast(_bits("bitwise_xor", total, n.Literal(WORD_SIGNS, UINT32)) if signed else total, INT32)

    def _rest(self) -> list[n.Statement]:
        """The terms that fill no piece, as they were."""
        done = BYTES * self.row.pieces * self.row.words
        if done == _extent(self.terms):
            return []
        rest = replace(self.terms, lower=n.Num(done), body=n.Block((self.vector,)))
        loops = nested((*self.row.groups, rest), n.Block((self.vector,)))
        return list(renamed(loops, f"_rest{self.number}").statements)

    @property
    def total(self) -> n.Buffer:
        """Where the sum is of a panel's columns, for all terms in words."""
        return self._of_columns("total", FLOAT32)

    @property
    def sums(self) -> tuple[n.Buffer, ...]:
        """Where the sums of products with each digit of a piece are."""
        return tuple(self._of_columns(f"digit{digit}_", INT32) for digit in range(DIGITS))

    def _of_columns(self, name: str, kind: DType) -> n.Buffer:
        return n.Buffer(f"{name}{self.number}", kind, self.found.stored.buffer.shape[-1:], n.Space.WORKSPACE)

    def _over_columns(self, *parts: n.Statement) -> n.For:
        length = ix.subtract(self.vector.upper, self.vector.lower)
        return replace(self.vector, lower=n.Num(0), upper=length, body=n.Block(parts))

    def _counted(self, index: Sequence[n.Index]) -> tuple[n.Index, ...]:
        return tuple(ix.substitute(each, self._at) for each in index)

    @property
    def _at(self) -> dict[str, n.Index]:
        """The column, counted from the first one of the loop: of known places, so that all sums stay in registers."""
        return {self.vector.var: ix.add(self.vector.lower, n.Var(self.vector.var))}

    @property
    def _here(self) -> tuple[n.Index, ...]:
        return self._counted((n.Var(self.vector.var),))


def _bits(function: str, *args: n.Expr) -> n.Expr:
    return n.Call(function, args, UINT32)
