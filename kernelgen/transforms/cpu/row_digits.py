"""Rows as fixed point: pieces of a row are integers of three digits to base 256, times a power of two of their own.

    for each piece of a row x, of terms t:
      power = the power of two in max |x[t]|, so that |x[t]| * 2^22 / power fits three digits from -128 to 127
      x[t] = (digit[0, t] + 256 * digit[1, t] + 65536 * digit[2, t]) * unit      unit = power * 2^-22

Words of four digits are what an instruction multiplies by four bytes of weights. All of a row's digits are computed once, in
front of what reads them.

Accuracy. A term is wrong by half a unit at most, which is 2^-23 of the greatest one of its piece where that lies just above a
power of two, and 2^-24 just below; numbers of so few bits that they lie on units are exact. Terms below 2^-127 are lost.
Where a piece holds an infinity or no number its unit is infinite and its digits are zeros: no result is a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import nested
from kernelgen.tensor.dtypes import BOOL, FLOAT32, INT32, UINT32
from kernelgen.transforms.cpu.byte_words import BYTES, cast, word_of

DIGITS = 3
BASE = 256
SIGNS = 0x808080
"""What makes digits without a sign of those with one: added to the number, or by bits to each."""

WORD_SIGNS = 0x80808080
"""The same of four digits in a word."""

SPARE = 129 * 2.0**-9
"""Of the greatest term, a quarter and a little: numbers below 128 / 129 of 2^23 have such digits, others have none."""

LEAST = 2.0**-106
"""Of what the power is taken of: the unit is no less than the least normal number."""

PER_POWER = 2.0**20


@dataclass(frozen=True)
class Row:
    """Pieces of a row: ``loads`` are its elements that a turn of the loop over ``term`` reads, inside of loops over ``groups``.

    All begin at 0; each turn of the groups has as many ``pieces`` of so many ``words``.
    """

    loads: tuple[n.Load, ...]
    term: str
    groups: tuple[n.For, ...]
    pieces: int
    words: int

    @property
    def key(self) -> tuple[object, ...]:
        """The same for rows whose digits are the same."""
        names = {loop.var: n.Var(f"group{number}") for number, loop in enumerate(self.groups)}
        places = {**names, self.term: n.Var("term")}
        loads = tuple((load.buffer, tuple(ix.substitute(each, places) for each in load.index)) for load in self.loads)
        extents = tuple(map(_length, self.groups))
        return loads, extents, self.pieces, self.words

    def element(self, half: int, piece: n.Index, word: n.Index, place: int) -> n.Load:
        """The term at the ``place`` of a ``word`` of a ``piece``; of two in a byte, that of this ``half``."""
        load, term = self.loads[half], term_at(piece, word, place, self.words)
        return n.Load(load.buffer, tuple(ix.substitute(each, {self.term: term}) for each in load.index))


def term_at(piece: n.Index, word: n.Index, place: int, words: int) -> n.Index:
    """The number of the term at the ``place`` of a ``word``, of so many ``words`` of a ``piece``: neighbours are in
    words beside each other, so that vectors of words are made of vectors of terms.
    """
    return ix.add(ix.add(ix.multiply(piece, n.Num(BYTES * words)), word), n.Num(place * words))


@dataclass(frozen=True)
class Digits:
    """Where a row's digits are: ``words`` by group, piece, digit, half and word; what each digit ``sums`` to in a piece; the
    greatest term, ``most``, the ``unit`` and the ``total`` of each piece.
    """

    words: n.Buffer
    sums: n.Buffer
    most: n.Buffer
    unit: n.Buffer
    total: n.Buffer

    @property
    def buffers(self) -> tuple[n.Buffer, ...]:
        """All of them."""
        return self.words, self.sums, self.most, self.unit, self.total


def digits_of(row: Row, number: int) -> Digits:
    """Buffers for the digits of the so-manieth row."""
    outer = (*(_length(loop) for loop in row.groups), row.pieces)
    made = {
        "words": ((*outer, DIGITS, len(row.loads), row.words), INT32), "sums": ((*outer, DIGITS), INT32),
        "most": (outer, FLOAT32), "unit": (outer, FLOAT32), "total": (outer, FLOAT32),
    }  # fmt: skip
    named = {
        name: n.Buffer(f"row{number}_{name}", kind, shape, n.Space.WORKSPACE) for name, (shape, kind) in made.items()
    }
    return Digits(**named)


def fills(row: Row, digits: Digits, number: int) -> list[n.Statement]:
    """What computes the ``digits`` of a ``row``, the so-manieth one by its ``number``."""
    groups = [
        n.For(f"digit_group{number}_{at}", loop.lower, loop.upper, n.Block()) for at, loop in enumerate(row.groups)
    ]
    piece = n.For(f"digit_piece{number}", n.Num(0), n.Num(row.pieces), n.Block())
    here = {loop.var: n.Var(own.var) for loop, own in zip(row.groups, groups, strict=True)}
    loads = tuple(n.Load(load.buffer, tuple(ix.substitute(each, here) for each in load.index)) for load in row.loads)
    own = Row(loads, row.term, tuple(groups), row.pieces, row.words)
    parts = _Piece(own, digits, n.Var(piece.var), str(number)).statements()
    return list(nested((*groups, piece), n.Block(tuple(parts))).statements)


@dataclass(frozen=True)
class _Piece:
    """The piece of a ``row`` whose ``digits`` are to be computed, and what names end with."""

    row: Row
    digits: Digits
    piece: n.Var
    suffix: str

    def statements(self) -> Iterator[n.Statement]:
        """All of them."""
        yield from self._power()
        yield from self._words()
        yield from self._sums()

    def _power(self) -> Iterator[n.Statement]:
        """The power of two in the greatest term."""
        word = f"digit_power_word{self.suffix}"
        sizes = [_call("abs", load) for _, load in self._terms(word)]
        greatest = reduce(lambda a, b: _call("maximum", a, b), sizes)
        yield self._store(self.digits.most, (), _float(0.0))
        yield self._over_words(word, [n.Accumulate(self.digits.most, self._outer, "maximum", greatest)])
        found = _call("maximum", times(self._load(self.digits.most), _float(SPARE)), _float(LEAST))
        yield n.Let(f"digit_power{self.suffix}", _call("power_of_two", found))
        power = n.Ref(f"digit_power{self.suffix}", FLOAT32)
        yield n.Let(f"digit_scale{self.suffix}", _call("div", _float(PER_POWER), power))
        yield self._store(self.digits.unit, (), times(power, _float(1 / PER_POWER)))

    def _words(self) -> Iterator[n.Statement]:
        """The words of digits: of each number without a sign, of which each byte is a digit and 128."""
        word = f"digit_word{self.suffix}"
        scale = n.Ref(f"digit_scale{self.suffix}", FLOAT32)
        parts: list[n.Statement] = []
        whole: list[list[n.Expr]] = [[] for _ in self.row.loads]
        for at, (half, load) in enumerate(self._terms(word)):
            scaled, name = n.Ref(f"scaled{self.suffix}_{at}", FLOAT32), f"fixed{self.suffix}_{at}"
            parts.append(n.Let(scaled.name, _call("round", times(load, scale))))
            kept = n.Call("select", (n.Call("is_finite", (scaled,), BOOL), scaled, _float(0.0)), FLOAT32)
            number = cast(_whole("add", cast(kept, INT32), n.Literal(SIGNS, INT32)), UINT32)
            parts.append(n.Let(name, number))
            whole[half].append(n.Ref(name, UINT32))
        for digit in range(DIGITS):
            for half, numbers in enumerate(whole):
                parts.append(self._store(self.digits.words, (digit, half, n.Var(word)), _word(numbers, digit)))
        yield self._over_words(word, parts)

    def _sums(self) -> Iterator[n.Statement]:
        """What the digits add up to, and all terms."""
        word, ones = f"digit_sum_word{self.suffix}", n.Literal(0x01010101, INT32)
        for digit in range(DIGITS):
            yield self._store(self.digits.sums, (digit,), n.Literal(0, INT32))
        added = [
            n.Accumulate(
                self.digits.sums, (*self._outer, n.Num(digit)), "add",
                n.Call("byte_dot", (ones, self._load(self.digits.words, digit, half, n.Var(word))), INT32),
            )
            for digit in range(DIGITS) for half in range(len(self.row.loads))
        ]  # fmt: skip
        yield self._over_words(word, added)
        sums = [self._load(self.digits.sums, digit) for digit in range(DIGITS)]
        yield self._store(self.digits.total, (), joined(sums, self._load(self.digits.unit)))

    def _terms(self, word: str) -> Iterator[tuple[int, n.Load]]:
        """Those of one word, each with its half."""
        for half in range(len(self.row.loads)):
            for place in range(BYTES):
                yield half, self.row.element(half, self.piece, n.Var(word), place)

    def _over_words(self, word: str, parts: Sequence[n.Statement]) -> n.For:
        return n.For(word, n.Num(0), n.Num(self.row.words), n.Block(tuple(parts)), n.LoopKind.VECTOR)

    def _load(self, buffer: n.Buffer, *places: int | n.Var) -> n.Load:
        return n.Load(buffer, (*self._outer, *map(_place, places)))

    def _store(self, buffer: n.Buffer, places: Sequence[int | n.Var], value: n.Expr) -> n.Store:
        return n.Store(buffer, (*self._outer, *map(_place, places)), value)

    @property
    def _outer(self) -> tuple[n.Index, ...]:
        return (*(n.Var(loop.var) for loop in self.row.groups), self.piece)


def _place(place: int | n.Var) -> n.Index:
    return n.Num(place) if isinstance(place, int) else place


def joined(digits: Sequence[n.Expr], unit: n.Expr) -> n.Expr:
    """The float that three sums of digits stand for in this ``unit``: the lower two fit an int32 together."""
    low, middle, high = digits
    lower = _whole("add", low, _whole("mul", middle, n.Literal(BASE, INT32)))
    return _call("add", times(cast(lower, FLOAT32), unit), times(cast(high, FLOAT32), times(unit, _float(BASE**2))))


def _word(numbers: Sequence[n.Expr], digit: int) -> n.Expr:
    """The word of one ``digit`` of four ``numbers``, the first at the lowest place."""
    high = [_bits("floor_div", number, BASE**digit) if digit else number for number in numbers]
    return cast(
        _bits("bitwise_xor", word_of([_bits("bitwise_and", each, BASE - 1) for each in high]), WORD_SIGNS), INT32
    )


def times(left: n.Expr, right: n.Expr) -> n.Expr:
    """The product of floats."""
    return _call("mul", left, right)


def _call(function: str, *args: n.Expr) -> n.Expr:
    return n.Call(function, args, FLOAT32)


def _whole(function: str, *args: n.Expr) -> n.Expr:
    return n.Call(function, args, INT32)


def _bits(function: str, value: n.Expr, number: int) -> n.Expr:
    return n.Call(function, (value, n.Literal(number, UINT32)), UINT32)


def _float(value: float) -> n.Literal:
    return n.Literal(float(value), FLOAT32)


def _length(loop: n.For) -> int:
    assert isinstance(loop.upper, n.Num), "it is known"
    return loop.upper.value
