"""Quotients by a known divisor that are rounded to integers next, as a multiplication and a fused one.

    round(x / s)    ->    round(fma(x, high, x * low))          high + low = 1 / s, both of one sign

A division of vectors takes as long as eight of these, and quantized networks round a quotient at every edge. Both quotients are
equal to the last bit where neither is tiny, and a tiny one is rounded to 0 either way; infinities stay what they are.

Why they are equal: ``high`` lacks less than ``2^-23`` of ``1 / s``, ``low`` and its product are rounded once each, so that what
the last instruction rounds is off by less than ``2^-46`` of itself. Only a quotient that near to the middle between two floats
may be rounded otherwise: ``X 2^k = (2 Q + 1) S + r`` of integers of 24 bits and ``|r| <= 8``. For a known ``S`` all such ``X``
are enumerated and tried in exact arithmetic.

Source: Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the divisor is known in
advance", IEEE Transactions on Computers 53(8), 2004.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import frexp, isfinite, ldexp

from kernelgen.targets.cpu.text.values import Value

BITS = 24
"""Of a float32's significand."""
NEAREST = 8
"""The largest ``|r|`` of a quotient within ``2^-46`` of a middle."""
MOST_EXPONENT = 60
"""Of divisors: neither half of ``1 / s`` is tiny, and no quotient that is rounded to other numbers than 0."""


def quotient_to_round(x: Value, divisor: float) -> Value | None:
    """``x / divisor`` of floats that only its nearest integers are taken of; None where a division is needed."""
    found = reciprocal(divisor) if x.kind == "float" and x.function.module.host.has_fma else None
    if found is None:
        return None
    high, low = found
    return x.fma(high, x * low) if low else x * high


@lru_cache(maxsize=4096)
def reciprocal(divisor: float) -> tuple[float, float] | None:
    """(high, low) of a float32 ``divisor``, with which all quotients are exact to the last bit; None where there are none."""
    if not isfinite(divisor) or not abs(frexp(divisor)[1]) <= MOST_EXPONENT or not divisor:
        return None
    significand, exponent = frexp(abs(divisor))
    whole = int(ldexp(significand, BITS))
    exact = Fraction(1, whole)
    high = _nearest(exact, downwards=True)
    low = _nearest(exact - high)
    if not all(_is_exact(x, whole, high, low) for x in near_middles(whole)):
        return None
    scale = ldexp(1.0, BITS - exponent) * (1 if divisor > 0 else -1)
    return float(high) * scale, float(low) * scale


def near_middles(divisor: int) -> Iterator[int]:
    """The significands whose quotients are that near to the middle between two floats."""
    zeros = (divisor & -divisor).bit_length() - 1
    for shift in (BITS, BITS + 1):
        for rest in (*range(-NEAREST, 0), *range(1, NEAREST + 1)):
            if rest % (1 << zeros):
                continue
            modulus = 1 << (shift - zeros)
            first = -(rest >> zeros) * pow(divisor >> zeros, -1, modulus) % modulus
            for middle in range(first, 1 << (BITS + 1), modulus):
                x = middle * divisor + rest >> shift
                if middle % 2 and middle >> BITS and 1 << (BITS - 1) <= x < 1 << BITS:
                    yield x


def _is_exact(x: int, divisor: int, high: Fraction, low: Fraction) -> bool:
    return _nearest(x * high + _nearest(x * low)) == _nearest(Fraction(x, divisor))


def _nearest(x: Fraction, downwards: bool = False) -> Fraction:
    """The float of 24 bits nearest to a positive number, to even halfway; or the next below."""
    if not x:
        return x
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - BITS
    unit = Fraction(2) ** exponent
    while x / unit >= 1 << BITS:
        unit *= 2
    whole = x / unit
    return (whole.numerator // whole.denominator if downwards else round(whole)) * unit
