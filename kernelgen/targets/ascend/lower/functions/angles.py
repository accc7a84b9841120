"""Trigonometric functions of float32 and their inverses.

atan(x)      polynomial of t = min(a, 1) / max(a, 1), a = |x|; pi/2 - that above 1
atan2(y, x)  the same of the smaller size by the larger; pi - that left of 0, with the sign of y
asin(x)      polynomial; above 1/2  pi/2 - 2 asin(sqrt((1 - a) / 2))
sin(x)       x = quadrant pi/2 + r by whole numbers, for x of any size; polynomials of r
"""

from __future__ import annotations

import math

from kernelgen.targets import coefficients
from kernelgen.targets.ascend.lower.functions.reals import Real, number_of, real_of
from kernelgen.targets.ascend.lower.functions.words import Word
from kernelgen.targets.ascend.lower.program.names import Held

HALF_PI = math.pi / 2
TINY = 2.0**-149
TWO_OVER_PI = (
    40, 10430, 2670176, 683565275, -1100948589, 1625002897, -611086075, -1819212470, -1861924225, 88768265, 1249839573,
    2131351028, 165016701, -705397427, -193114825, 2102212464, 1295478838, 930100952, 1882642597, 920167782, -660249009,
    -1520021744, 1716457700, 1326507024, 283381887, -468680812, 276796504, 2140428522, -1806112009, 1491793838, -352866575,
    -139529896,
)  # fmt: skip
"""Word k is ``2/pi 2^(8k + 6)`` without its fraction, modulo 2^32: windows of 32 digits, each 8 further."""


def atan(x: Real) -> Real:
    """The arc tangent."""
    size = abs(x)
    near = _small_atan(size.at_most(1.0) / size.at_least(1.0))
    return (HALF_PI - near).where(size.compare("GT", 1.0), near).signed_as(x)


def _small_atan(t: Real) -> Real:
    """From 0 to 1."""
    square = t * t
    return square * square.polynomial(coefficients.ATAN) * t + t


def atan2(y: Real, x: Real) -> Real:
    """The angle of the point (x, y), from -pi to pi; zeros and infinities have angles too."""
    height, width = abs(y), abs(x)
    low, high = height.at_most(width), height.at_least(width)
    share = (low / high.at_least(TINY)).where(low.compare("NE", math.inf), 1.0)
    near = _small_atan(share)
    first = (HALF_PI - near).where(height.compare("GT", width), near)
    left = x.bits.sign
    return real_of((math.pi - first).bits.where(left, first.bits)).signed_as(y)


def asin(x: Real) -> Real:
    """The arc sine."""
    size = abs(x)
    far = size.compare("GT", 0.5)
    near = _small_asin(size, far)
    return (HALF_PI - near * 2.0).where(far, near).signed_as(x)


def acos(x: Real) -> Real:
    """The arc cosine."""
    size = abs(x)
    far, left = size.compare("GT", 0.5), x.compare("LT", 0.0)
    near = _small_asin(size, far)
    twice = near * 2.0
    outside = (math.pi - twice).where(left, twice)
    return outside.where(far, HALF_PI - near.signed_as(x))


def _small_asin(size: Real, far: Held) -> Real:
    """Of a number up to 1/2, or of ``sqrt((1 - size) / 2)``."""
    square = ((1.0 - size) * 0.5).where(far, size * size)
    root = square.apply("Sqrt").where(far, size)
    return square * square.polynomial(coefficients.ASIN) * root + root


# ---------------------------------------------------------------- waves


def sin(x: Real) -> Real:
    """The sine."""
    quadrant, r = _reduced(abs(x))
    return _by_quadrant(quadrant, r, x.bits >> 31)


def cos(x: Real) -> Real:
    """The cosine: the sine one quadrant further."""
    quadrant, r = _reduced(abs(x))
    return _by_quadrant(quadrant + 1, r)


def tan(x: Real) -> Real:
    """The tangent: the sine by the cosine, in odd quadrants the cosine by minus the sine."""
    quadrant, r = _reduced(abs(x))
    sine, cosine = _sine(r).bits, _cosine(r).bits
    odd = (quadrant << 31).sign
    size = real_of(cosine.where(odd, sine)) / real_of(sine.where(odd, cosine))
    return real_of(size.bits + (quadrant + (x.bits >> 31) << 31))


def _by_quadrant(quadrant: Word, r: Real, negative: Word | int = 0) -> Real:
    """The sine of ``quadrant pi/2 + r``; adding the highest bit changes the sign."""
    size = _cosine(r).bits.where((quadrant << 31).sign, _sine(r).bits)
    return real_of(size + ((quadrant >> 1) + negative << 31))


def _sine(r: Real) -> Real:
    square = r * r
    return square * square.polynomial(coefficients.SIN) * r + r


def _cosine(r: Real) -> Real:
    square = r * r
    return square * square * square.polynomial(coefficients.COS) + (square * -0.5 + 1.0)


def _reduced(x: Real) -> tuple[Word, Real]:
    """The quadrant and ``r`` with ``x = quadrant pi/2 + r``, abs(r) <= pi/4, for every x that is not negative.

    ``x = m 2^(8q - 24)``, m whole. The digits of 2/pi from the 8q-th on, in three words, times m are the quadrants that x
    has gone through: those that are multiples of four fall out at the left.
    """
    place = ((x.bits >> 23) - 126).at_least(0) >> 3
    m = (x * real_of(place * -8 + 151 << 23)).truncated
    first, second, third = (_digits(place, word) for word in range(3))
    middle = m * second
    below = middle + m.times_high(third)
    carry = below.less_unsigned(middle)
    above = m * first + m.times_high(second) - carry
    quadrant = above + (1 << 29) >> 30
    left = above - (quadrant << 30)
    far = (number_of(left) + number_of(below >> 1) * 2.0**-31) * (HALF_PI * 2.0**-30)
    return quadrant, x.where(x.compare("LT", 0.75), far) + (x - x)  # no number where x is none


def _digits(place: Word, word: int) -> Word:
    """32 binary digits of 2/pi, from ``8 place + 32 word - 2`` on."""
    return place.look_up(TWO_OVER_PI, 4 * word)
