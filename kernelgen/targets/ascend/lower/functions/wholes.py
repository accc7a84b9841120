"""Whole numbers of 8 to 64 bits as words of 32 in every lane: arithmetic modulo 2^n, comparisons, division.

    a + b    low words, a carry where their sum is less than one of them, high words
    a * b    the product of the low words has 64 bits, each other product counts for the high word
    a < b    the sign of the difference and what ran over
    a / b    float32 quotients of what is left, each a little too small: 20 binary digits a time, one step at the end

Comparisons give masks: all bits of a word or none. No instruction takes 64 bits, and no comparison takes words but for
equality, so that all of this is sums, products, shifts and bits of int32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelgen.targets.ascend.lower.functions.reals import Real, number_of
from kernelgen.targets.ascend.lower.functions.words import Word

DIGITS = 20
"""Binary digits of a quotient that one step finds, of float32's 24."""
BELOW = 1.0 - 2.0**-21
"""Makes up for the roundings of a quotient of rounded numbers."""
LIMIT = 2.0**32


@dataclass(frozen=True)
class Whole:
    """One word, or the low and the high one; ``signed`` says what the highest bit means, ``small`` that 16 bits hold it."""

    words: tuple[Word, ...]
    signed: bool
    small: bool = False

    @property
    def low(self) -> Word:
        """The last 32 bits."""
        return self.words[0]

    @property
    def high(self) -> Word:
        """The first 32 bits."""
        return self.words[-1]

    def like(self, *words: Word) -> Whole:
        """Another number with a sign where this one has one."""
        return Whole(words, self.signed)

    def widened(self) -> Whole:
        """Of two words."""
        if len(self.words) == 2:
            return self
        return self.like(self.low, self.low.sign if self.signed else Word.of(self.low.lanes, 0))

    # arithmetic

    def __add__(self, other: Whole) -> Whole:
        total = self.low + other.low
        if len(self.words) == 1:
            return self.like(total)
        return self.like(total, self.high + other.high - total.less_unsigned(self.low))

    def __sub__(self, other: Whole) -> Whole:
        left = self.low - other.low
        if len(self.words) == 1:
            return self.like(left)
        return self.like(left, self.high - other.high + self.low.less_unsigned(other.low))

    def __mul__(self, other: Whole) -> Whole:
        product = self.low * other.low
        if len(self.words) == 1:
            return self.like(product)
        across = self.low * other.high + self.high * other.low
        return self.like(product, self.low.times_high(other.low) + across)

    def __neg__(self) -> Whole:
        return self.zero - self

    def __abs__(self) -> Whole:
        return (-self).where(self.is_negative, self) if self.signed else self

    def xor(self, other: Whole) -> Whole:
        """The bits of one of both only."""
        return self.like(*(a + b - ((a & b) << 1) for a, b in zip(self.words, other.words, strict=True)))

    def shifted(self, bits: int) -> Whole:
        """By a power of two, rounded down."""
        if not bits:
            return self
        right: Callable[[Word, int], Word] = Word.over if self.signed else Word.__rshift__
        if len(self.words) == 1:
            return self.like(right(self.low, bits))
        fill = self.high.sign if self.signed else Word.of(self.low.lanes, 0)
        if bits >= 32:
            return self.like(right(self.high, bits - 32) if bits > 32 else self.high, fill)
        return self.like((self.low >> bits) | (self.high << 32 - bits), right(self.high, bits))

    def last(self, bits: int) -> Whole:
        """The last bits, a number without a sign."""
        if not bits:
            return self.zero
        if bits <= 32:
            return self.like(self.low.low(bits), *(Word.of(word.lanes, 0) for word in self.words[1:]))
        return self.like(self.low, self.high.low(bits - 32))

    @property
    def zero(self) -> Whole:
        """0."""
        return self.like(*(Word.of(word.lanes, 0) for word in self.words))

    # masks

    @property
    def is_negative(self) -> Word:
        """Where the number is below 0."""
        return self.high.sign if self.signed else Word.of(self.low.lanes, 0)

    @property
    def is_some(self) -> Word:
        """Where the number is not 0."""
        bits = self.low if len(self.words) == 1 else self.low | self.high
        return (bits | -bits).sign

    def differs(self, other: Whole) -> Word:
        """Where both are not the same number."""
        apart = [a - b for a, b in zip(self.words, other.words, strict=True)]
        return self.like(*apart).is_some

    def less(self, other: Whole) -> Word:
        """Where this is the smaller number."""
        a, b = (self.high, other.high) if not self.signed else (other.high, self.high)
        left = (self - other).high
        return ((~a & b) | ((~a | b) & left)).sign

    def where(self, mask: Word, other: Whole) -> Whole:
        """This where all bits of the mask are set, else the other."""
        return self.like(*(a.where(mask, b) for a, b in zip(self.words, other.words, strict=True)))

    # division

    def divided(self, divisor: Whole) -> tuple[Whole, Whole]:
        """Quotient towards 0 and remainder; both 0 where the divisor is."""
        if self.small and divisor.small:
            quotient = self.like((number_of(self.low) / number_of(divisor.low)).truncated)
            return self._defined(divisor, quotient)
        quotient = _unsigned_quotient(abs(self), abs(divisor))
        if self.signed:
            turned = self.is_negative + divisor.is_negative  # 0 where the signs are alike, or -2
            quotient = (-quotient).where((turned << 31).sign, quotient)
        return self._defined(divisor, replace(quotient, signed=self.signed))

    def _defined(self, divisor: Whole, quotient: Whole) -> tuple[Whole, Whole]:
        some = divisor.is_some
        return quotient.where(some, self.zero), (self - quotient * divisor).where(some, self.zero)

    def floor_divided(self, divisor: Whole) -> tuple[Whole, Whole]:
        """Quotient rounded down and the remainder, which has the sign of the divisor."""
        quotient, rest = self.divided(divisor)
        if not self.signed:
            return quotient, rest
        crooked = rest.is_some & ((rest.is_negative + divisor.is_negative) << 31).sign
        return quotient + self.like(*(crooked for _ in self.words)), (rest + divisor).where(crooked, rest)

    @property
    def real(self) -> Real:
        """The nearest float32, but for a rounding; of a number without a sign."""
        parts = [number_of(word >> 16) * 2.0**16 + number_of(word.low(16)) for word in self.words]
        return parts[0] if len(parts) == 1 else parts[1] * LIMIT + parts[0]


def _unsigned_quotient(number: Whole, divisor: Whole) -> Whole:
    rest, divisor = replace(number, signed=False), replace(divisor, signed=False)
    share = 1.0 / divisor.real * BELOW
    total: Whole | None = None
    for _ in range(-(-32 * len(rest.words) // DIGITS) + 1):
        part = _whole(rest.real * share, rest)
        total = part if total is None else total + part
        rest = rest - part * divisor
    assert total is not None
    more = ~rest.less(divisor)
    return total - total.like(*(more, *(more for _ in total.words[1:])))


def _whole(x: Real, like: Whole) -> Whole:
    """A real that is not negative without its fraction; the next number where there is none."""
    return Whole(tuple(truncated(x, len(like.words))), signed=False)


def truncated(x: Real, count: int) -> list[Word]:
    """The words of a real that is not negative, low ones first."""
    if count == 1:
        return [_word(x)]
    high = _word(x * (1 / LIMIT))
    return [_word(x - Whole((high,), signed=False).real * LIMIT), high]


def _word(x: Real) -> Word:
    """A real from 0 to 2^32."""
    upper = (x * 2.0**-16).truncated
    return (upper << 16) + (x - number_of(upper) * 2.0**16).truncated
