"""float32 lanes as numbers in formulas, and the 32 bits of a lane as a whole number: each operator is an instruction or two.

x * x + 1.0          Mul(t, x, x); Adds(u, t, 1.0)
Word: a + b, a * b   modulo 2^32;  a >> n without a sign;  a & b of all bits
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.targets.ascend.lower.functions.words import Word
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.program.names import Constant, Held
from kernelgen.tensor.dtypes import FLOAT32, INT32


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
        return real_of(self.bits | (other.bits >> 31 << 31))

    @property
    def top(self) -> Real:
        """The first 12 binary digits: the product of two such numbers is exact."""
        return real_of(self.bits >> 12 << 12)

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


def real_of(word: Word) -> Real:
    """The float32 with these bits."""
    return Real(word.lanes, word.lanes.seen_as(word.held, FLOAT32))


def number_of(word: Word) -> Real:
    """The signed number, rounded."""
    return Real(word.lanes, word.lanes.cast(word.held, FLOAT32))


def lanes_of(mask: Word) -> Held:
    """A bit for each lane whose word is not 0."""
    return mask.lanes.as_bits(number_of(mask).held)
