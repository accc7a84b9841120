"""The 32 bits of every lane as a whole number: each operator is an instruction or two, modulo 2^32.

    a + b, a * b     Add, Mul of int32
    a >> n           without a sign: ShiftRight of uint32
    a & b            And of all bits, as words of 16

What is known is a number, and computed here: a product with 0 needs no instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelgen.ascendc.instructions import GATHER, TensorRef
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.lanes.written_numbers import words_of
from kernelgen.targets.ascend.lower.program.names import Constant, Held, Value
from kernelgen.tensor.dtypes import INT32, INT64, UINT16, UINT32

ALL = -1
"""All bits."""


@dataclass(frozen=True)
class Word:
    """32 bits in every lane: those of a tile, or a number with its sign."""

    lanes: Lanes
    value: Value

    @staticmethod
    def of(lanes: Lanes, number: int) -> Word:
        """A known number, modulo 2^32."""
        return Word(lanes, Constant(words_of(Constant(number, INT64))[0], INT32))

    @property
    def known(self) -> int | None:
        """The number, where it is one."""
        return int(self.value.value) if isinstance(self.value, Constant) else None

    @property
    def held(self) -> Held:
        """The tile."""
        return self.lanes.held(self.value)

    def _made(self, held: Held) -> Word:
        return Word(self.lanes, held)

    def _as_word(self, other: Word | int) -> Word:
        return other if isinstance(other, Word) else Word.of(self.lanes, other)

    def _scalar(self, operation: str, number: int) -> Word:
        return self._made(self.lanes.scalar(operation, self.held, number, INT32))

    def _binary(self, operation: str, other: Word) -> Word:
        return self._made(self.lanes.binary(operation, self.held, other.held, INT32))

    # arithmetic

    def __add__(self, other: Word | int) -> Word:
        other = self._as_word(other)
        if self.known is not None:
            if other.known is not None:
                return Word.of(self.lanes, self.known + other.known)
            return other + self
        if other.known is None:
            return self._binary("Add", other)
        return self._scalar("Adds", other.known) if other.known else self

    def __sub__(self, other: Word | int) -> Word:
        other = self._as_word(other)
        if other.known is not None:
            return self + Word.of(self.lanes, -other.known)
        return -other + self if self.known is not None else self._binary("Sub", other)

    def __rsub__(self, other: int) -> Word:
        return -self + other

    def __neg__(self) -> Word:
        return self * -1

    def __mul__(self, other: Word | int) -> Word:
        other = self._as_word(other)
        if self.known is not None:
            if other.known is not None:
                return Word.of(self.lanes, self.known * other.known)
            return other * self
        if other.known is None:
            return self._binary("Mul", other)
        return self if other.known == 1 else self._scalar("Muls", other.known) if other.known else other

    def at_least(self, other: int) -> Word:
        """The larger of both, with their signs."""
        return self._scalar("Maxs", other)

    def at_most(self, other: int) -> Word:
        """The smaller of both, with their signs."""
        return self._scalar("Mins", other)

    def times_high(self, other: Word) -> Word:
        """The high 32 bits of a product, both without signs: by halves, of which no sum runs over."""
        a1, a0, b1, b0 = self >> 16, self.low(16), other >> 16, other.low(16)
        lower = a1 * b0 + (a0 * b0 >> 16)
        upper = a0 * b1 + lower.low(16)
        return a1 * b1 + (lower >> 16) + (upper >> 16)

    # bits

    def _shifted(self, operation: Callable[[Word], Word], count: int, known: Callable[[int], int]) -> Word:
        if self.known is not None:
            return Word.of(self.lanes, known(self.known))
        return operation(self) if count else self

    def __lshift__(self, count: int) -> Word:
        return self._shifted(lambda word: word._scalar("ShiftLeft", count), count, lambda number: number << count)

    def __rshift__(self, count: int) -> Word:
        """Zeros come in from the left."""
        return self._shifted(lambda word: word._unsigned(count), count, lambda number: number % (1 << 32) >> count)

    def _unsigned(self, count: int) -> Word:
        moved = self.lanes.scalar("ShiftRight", self.lanes.seen_as(self.held, UINT32), count, UINT32)
        return self._made(self.lanes.seen_as(moved, INT32))

    def over(self, bits: int) -> Word:
        """The number by a power of two, rounded down."""
        return self._shifted(lambda word: word._scalar("ShiftRight", bits), bits, lambda number: number >> bits)

    @property
    def sign(self) -> Word:
        """All bits where the number is negative, none elsewhere."""
        return self.over(31)

    def low(self, bits: int) -> Word:
        """The last bits."""
        return self << 32 - bits >> 32 - bits

    def _bitwise(self, operation: str, *others: Word) -> Word:
        found = self.lanes.new(INT32)
        target, *sources = (self._halves(one) for one in (found, self.held, *(other.held for other in others)))
        operands = dict(zip(("first", "second") if others else ("src",), sources, strict=True))
        self.lanes.writer.emit(operation, dst=target, count=self.lanes.lanes * 2, **operands)
        return self._made(found)

    def _halves(self, held: Held) -> TensorRef:
        """The operand as words of 16 bits, which is all that And, Or and Not take."""
        return self.lanes.writer.alias(held.tensor, UINT16)[held.offset * 2]

    def __and__(self, other: Word) -> Word:
        if self.known is not None:
            return other & self if other.known is None else Word.of(self.lanes, self.known & other.known)
        if other.known in (0, ALL):
            return other if other.known == 0 else self
        return self._bitwise("And", other)

    def __or__(self, other: Word) -> Word:
        if self.known is not None:
            return other | self if other.known is None else Word.of(self.lanes, self.known | other.known)
        if other.known in (0, ALL):
            return self if other.known == 0 else other
        return self._bitwise("Or", other)

    def __invert__(self) -> Word:
        return Word.of(self.lanes, ~self.known) if self.known is not None else self._bitwise("Not")

    # masks

    def less_unsigned(self, other: Word) -> Word:
        """All bits where the number without its sign is less."""
        if other.known == 0:
            return other
        return ((~self & other) | ((~self | other) & (self - other))).sign

    def where(self, mask: Word, other: Word) -> Word:
        """This where all bits of the mask are set, the other where none are."""
        return (self & mask) | (other & ~mask)

    def look_up(self, numbers: Sequence[int], first: int) -> Word:
        """``numbers[first + word]``."""
        table = self.lanes.counting.table(numbers)
        offsets = self.lanes.seen_as((self << 2).held, UINT32)
        found = self.lanes.new(INT32)
        self.lanes.writer.emit(
            GATHER, dst=found.ref, src=table, offsets=offsets.ref, base=4 * first, count=self.lanes.lanes
        )
        return self._made(found)
