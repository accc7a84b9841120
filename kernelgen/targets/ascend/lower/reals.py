"""float32 lanes as numbers in formulas, and the 32 bits of a lane as a whole number: each operator is an instruction or two.

x * x + 1.0          Mul(t, x, x); Adds(u, t, 1.0)
Word: a + b, a * b   modulo 2^32;  a >> n without a sign;  a & b of all bits
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.dtypes import FLOAT32, INT32, UINT16, UINT32
from kernelgen.targets.ascend.instructions import TensorRef
from kernelgen.targets.ascend.lower.lanes import Lanes
from kernelgen.targets.ascend.lower.values import Constant, Held


@dataclass(frozen=True)
class Real:
    """A float32 in every lane."""

    lanes: Lanes
    held: Held

    def _made(self, held: Held) -> Real:
        return Real(self.lanes, held)

    def _both(self, operation: str, first: Real | float, second: Real | float) -> Real:
        a, b = (one.held if isinstance(one, Real) else Constant(one, FLOAT32) for one in (first, second))
        return self._made(self.lanes.binary(operation, a, b, FLOAT32))

    def _with(self, operation: str, number: float) -> Real:
        return self._made(self.lanes.scalar(operation, self.held, number, FLOAT32))

    def __add__(self, other: Real | float) -> Real:
        return self._both("Add", self, other) if isinstance(other, Real) else self._with("Adds", other)

    def __sub__(self, other: Real | float) -> Real:
        return self._both("Sub", self, other) if isinstance(other, Real) else self._with("Adds", -other)

    def __rsub__(self, other: float) -> Real:
        return -self + other

    def __mul__(self, other: Real | float) -> Real:
        return self._both("Mul", self, other) if isinstance(other, Real) else self._with("Muls", other)

    def __truediv__(self, other: Real) -> Real:
        return self._both("Div", self, other)

    def __rtruediv__(self, other: float) -> Real:
        return self._both("Div", other, self)

    def __neg__(self) -> Real:
        return self._with("Muls", -1.0)

    def __abs__(self) -> Real:
        return self.apply("Abs")

    def apply(self, operation: str) -> Real:
        """An instruction of one operand: Exp, Ln, Sqrt, Abs."""
        return self._made(self.lanes.unary(operation, self.held, FLOAT32))

    def at_most(self, other: Real | float) -> Real:
        """The smaller of both; NaN stays NaN."""
        return self._both("Min", self, other) if isinstance(other, Real) else self._with("Mins", other)

    def at_least(self, other: Real | float) -> Real:
        """The larger of both; NaN stays NaN."""
        return self._both("Max", self, other) if isinstance(other, Real) else self._with("Maxs", other)

    def compare(self, mode: str, other: Real | float) -> Held:
        """A bit for each lane: LT, GT, LE, GE, EQ or NE."""
        second = other.held if isinstance(other, Real) else Constant(other, FLOAT32)
        return self.lanes.compare(mode, self.held, second)

    def where(self, chosen: Held, other: Real | float) -> Real:
        """This where the bit is set, else the other."""
        second = other.held if isinstance(other, Real) else Constant(other, FLOAT32)
        return self._made(self.lanes.select(chosen, self.held, second, FLOAT32))

    def polynomial(self, terms: Sequence[float]) -> Real:
        """``terms[0] + terms[1] x + ...`` by Horner's rule."""
        total = self * terms[-1] + terms[-2]
        for term in reversed(terms[:-2]):
            total = total * self + term
        return total

    def signed_as(self, other: Real) -> Real:
        """This, which is not negative, with the sign of the other one, of -0 too."""
        return (self.bits | (other.bits >> 31 << 31)).as_real

    @property
    def top(self) -> Real:
        """The first 12 binary digits: the product of two such numbers is exact."""
        return (self.bits >> 12 << 12).as_real

    @property
    def bits(self) -> Word:
        """The lanes' memory."""
        return Word(self.lanes, self.lanes.seen_as(self.held, INT32))

    @property
    def truncated(self) -> Word:
        """The whole number towards zero, the next one of int32 where there is none."""
        return Word(self.lanes, self.lanes.cast(self.held, INT32))

    @property
    def floored(self) -> Word:
        """The whole number below, the next one of int32 where there is none."""
        found = self.lanes.new(INT32)
        self.lanes.writer.emit("Cast", dst=found.ref, src=self.held.ref, mode="CAST_FLOOR", count=self.lanes.lanes)
        return Word(self.lanes, found)


@dataclass(frozen=True)
class Word:
    """32 bits in every lane."""

    lanes: Lanes
    held: Held

    def _made(self, held: Held) -> Word:
        return Word(self.lanes, held)

    def _number(self, operation: str, other: Word | int, with_scalar: str) -> Word:
        if isinstance(other, Word):
            return self._made(self.lanes.binary(operation, self.held, other.held, INT32))
        return self._made(self.lanes.scalar(with_scalar, self.held, other, INT32))

    def __add__(self, other: Word | int) -> Word:
        return self if other == 0 else self._number("Add", other, "Adds")

    def __sub__(self, other: Word | int) -> Word:
        return self._number("Sub", other, "") if isinstance(other, Word) else self + -other

    def __mul__(self, other: Word | int) -> Word:
        return self._number("Mul", other, "Muls")

    def __rsub__(self, other: int) -> Word:
        return self * -1 + other

    def at_least(self, other: int) -> Word:
        """The larger of both, with their signs."""
        return self._number("Max", other, "Maxs")

    def times_high(self, other: Word) -> Word:
        """The high 32 bits of a product, both without signs: by halves, of which no sum runs over."""
        a1, a0, b1, b0 = self >> 16, self.low(16), other >> 16, other.low(16)
        lower = a1 * b0 + (a0 * b0 >> 16)
        upper = a0 * b1 + lower.low(16)
        return a1 * b1 + (lower >> 16) + (upper >> 16)

    def less_unsigned(self, other: Word) -> Word:
        """All bits where the number without its sign is less."""
        return ((~self & other) | ((~self | other) & (self - other))).sign

    def look_up(self, numbers: Sequence[int], first: int) -> Word:
        """``numbers[first + word]``."""
        table = self.lanes.counting.table(numbers)
        offsets = self.lanes.seen_as((self << 2).held, UINT32)
        found = self.lanes.new(INT32)
        self.lanes.writer.emit(
            "Gather", dst=found.ref, src=table, offsets=offsets.ref, base=4 * first, count=self.lanes.lanes
        )
        return self._made(found)

    def __lshift__(self, count: int) -> Word:
        return self._made(self.lanes.scalar("ShiftLeft", self.held, count, INT32)) if count else self

    def __rshift__(self, count: int) -> Word:
        """Zeros come in from the left."""
        if not count:
            return self
        unsigned = self.lanes.scalar("ShiftRight", self.lanes.seen_as(self.held, UINT32), count, UINT32)
        return self._made(self.lanes.seen_as(unsigned, INT32))

    @property
    def sign(self) -> Word:
        """All bits where the number is negative, none elsewhere."""
        return self.over(31)

    def over(self, bits: int) -> Word:
        """The number by a power of two, rounded down."""
        return self._made(self.lanes.scalar("ShiftRight", self.held, bits, INT32))

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
        return self._bitwise("And", other)

    def __or__(self, other: Word) -> Word:
        return self._bitwise("Or", other)

    def __invert__(self) -> Word:
        return self._bitwise("Not")

    def where(self, mask: Word, other: Word) -> Word:
        """This where all bits of the mask are set, the other where none are."""
        return (self & mask) | (other & ~mask)

    @property
    def as_real(self) -> Real:
        """The float32 with these bits."""
        return Real(self.lanes, self.lanes.seen_as(self.held, FLOAT32))

    @property
    def number(self) -> Real:
        """The signed number, rounded."""
        return Real(self.lanes, self.lanes.cast(self.held, FLOAT32))
