"""Powers of float32: exp(y ln|x|) with the logarithm and the product in two parts, since exp makes their errors large.

|x| = 2^k (1 + f)     s = f / (2 + f)     ln|x| = k ln 2 + 2s + s^3 p(s^2)
"""

from __future__ import annotations

import math

from kernelgen.targets import coefficients
from kernelgen.targets.ascend.lower.functions.reals import Real, number_of, real_of
from kernelgen.targets.ascend.lower.program.names import Held

SQRT_HALF_BITS = 0x3F3504F3
LEAST_NORMAL, RAISED = 2.0**-126, 24
LN2_HIGH = 0.693359375
"""10 bits, so that k LN2_HIGH is exact."""
LN2_LOW = -2.12194440e-4
Sum = tuple[Real, Real]
"""A number in two parts, of which the second is small."""


def power(x: Real, y: Real) -> Real:
    """C's pow: 1 for y = 0, NaN for negative x where y has a fraction, signs of odd whole exponents."""
    lanes, size = x.lanes, abs(x)
    result = _exp(_product(y, _log(size)))
    whole, half = y.compare("EQ", _floor(y)), y * 0.5
    odd = lanes.words("And", whole, half.compare("NE", _floor(half)))
    result = result.signed_as(x).where(odd, result)
    negative = lanes.words("And", x.compare("LT", 0.0), x.compare("GT", -math.inf))
    result = result.where(lanes.words("Or", whole, lanes.words("Not", negative)), math.nan)
    return result.where(lanes.words("Not", _is_one(x, y)), 1.0)


def _is_one(x: Real, y: Real) -> Held:
    """Where the power is 1 whatever the formula says: y = 0, x = 1, x = -1 with an infinite y."""
    words, endless = x.lanes.words, abs(y).compare("EQ", math.inf)
    sure = words("Or", y.compare("EQ", 0.0), x.compare("EQ", 1.0))
    return words("Or", sure, words("And", x.compare("EQ", -1.0), endless))


def _floor(x: Real) -> Real:
    """The whole number below; floats beyond 2^23 have no fraction."""
    down = number_of(x.floored)
    return down.where(abs(x).compare("LT", 2.0**23), x)


def _log(x: Real) -> Sum:
    """The logarithm of a number that is not negative."""
    small = x.compare("LT", LEAST_NORMAL)
    offset = (x * 2.0**RAISED).where(small, x).bits - SQRT_HALF_BITS
    exponent = number_of(offset.over(23))
    exponent = (exponent - RAISED).where(small, exponent)
    share, rest = _share(real_of(offset.low(23) + SQRT_HALF_BITS) - 1.0)
    square = share * share
    rest = rest + share * square * square.polynomial(coefficients.ATANH)
    high, lost = _sum(exponent * LN2_HIGH, share * 2.0)
    high, low = _sum(high, lost + (rest + exponent * LN2_LOW))
    rough = x.apply("Ln")
    return high.where(abs(rough).compare("LT", math.inf), rough), low


def _share(f: Real) -> Sum:
    """``f / (2 + f)`` and twice what is missing, by what the rounded quotient leaves of f."""
    divisor = f + 2.0
    missing = f - (divisor - 2.0)
    share = f / divisor
    a, b = share.top, divisor.top
    c, d = share - a, divisor - b
    left = f - a * b - a * d - c * b - c * d - share * missing
    return share, left / divisor * 2.0


def _sum(first: Real, second: Real) -> Sum:
    """The rounded sum and what rounding lost."""
    total = first + second
    part = total - first
    return total, (first - (total - part)) + (second - part)


def _product(y: Real, log: Sum) -> Sum:
    high, low = log
    total = y * high
    a, b = y.top, high.top
    c, d = y - a, high - b
    lost = a * b - total + a * d + c * b + c * d
    return total, lost + y * low


def _exp(x: Sum) -> Real:
    """exp of both parts; of the first alone where the second is no number: infinite ones have none."""
    high, low = x
    rough = high.apply("Exp")
    fine = rough + rough * low
    return fine.where(fine.compare("EQ", fine), rough)
