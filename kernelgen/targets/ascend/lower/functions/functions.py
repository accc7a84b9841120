"""Exponentials, logarithms, hyperbolic functions and the error function of float32, with all digits at every magnitude.

Where a difference would cancel there is a polynomial, or a form without the difference:

    expm1(x)   exp(x) - 1; near 0  x + x^2 p(x)
    log1p(x)   ln(u) + (x - (u - 1)) / u, u = 1 + x: the second term is what rounding u lost
    asinh(x)   log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; ln(a) + ln 2 where that is the same
    erfc(x)    exp(-x^2) slow(x), x^2 in two parts that are exact; 2 - erfc(-x) below 0
"""

from __future__ import annotations

import math

from kernelgen.targets import coefficients
from kernelgen.targets.ascend.lower.functions.reals import Real

LN2 = math.log(2)
EXPM1_NEAR, TANH_NEAR, ERF_NEAR = 0.41, 0.25, 0.95
TANH_LIMIT = 30.0
"""From half of here on tanh is 1 in float32."""
EXP_LIMIT = 88.0
"""Up to here exp is finite in float32."""
LARGE = 1e8
"""From here on 1 + x^2 is x^2."""
ERFC_LIMIT = 10.1
"""From here on erfc is 0 in float32."""
ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Of t = 1 / (1 + p|x|): Abramowitz and Stegun 7.1.26, |error| < 1.5e-7."""
ERF_P = 0.3275911


def expm1(x: Real) -> Real:
    """``exp(x) - 1``."""
    near = x + x * x * x.polynomial(coefficients.EXPM1)
    return near.where(abs(x).compare("LT", EXPM1_NEAR), x.apply("Exp") - 1.0)


def log1p(x: Real) -> Real:
    """``ln(1 + x)``."""
    u = x + 1.0
    plain = u.apply("Ln")
    lost = (x - (u - 1.0)) / u
    usual = (plain + lost).where(lost.compare("EQ", lost), plain)  # lost is no number where u is 0 or infinite
    return x.where(u.compare("EQ", 1.0), usual)


def tanh(x: Real) -> Real:
    """``(exp(2x) - 1) / (exp(2x) + 1)``; an odd polynomial near 0."""
    square = x * x
    near = square * square.polynomial(coefficients.TANH_NEAR) * x + x
    grown = (x * 2.0).at_most(TANH_LIMIT).apply("Exp")
    far = (grown - 1.0) / (grown + 1.0)
    return near.where(abs(x).compare("LT", TANH_NEAR), far)


def sinh(x: Real) -> Real:
    """``(exp(a) - exp(-a)) / 2``; an odd polynomial below 1."""
    square, size = x * x, abs(x)
    near = square * square.polynomial(coefficients.SINH) * x + x
    half = _half_exp(size)
    return near.where(size.compare("LT", 1.0), (half - 0.25 / half).signed_as(x))


def cosh(x: Real) -> Real:
    """``(exp(a) + exp(-a)) / 2``."""
    half = _half_exp(abs(x))
    return half + 0.25 / half


def _half_exp(x: Real) -> Real:
    """``exp(x) / 2``, which is finite where exp(x) is not any more."""
    bounded = x.at_most(EXP_LIMIT)
    return bounded.apply("Exp") * 0.5 * (x - bounded).apply("Exp")


def asinh(x: Real) -> Real:
    """``ln(x + sqrt(x^2 + 1))``, odd."""
    size = abs(x)
    bounded = size.at_most(LARGE)
    square = bounded * bounded
    near = log1p(bounded + square / ((square + 1.0).apply("Sqrt") + 1.0))
    return _unless_large(size, near).signed_as(x)


def acosh(x: Real) -> Real:
    """``ln(x + sqrt(x^2 - 1))``, by x - 1, which is exact where that is small."""
    above = x - 1.0
    near = log1p(above + above.apply("Sqrt") * (above + 2.0).apply("Sqrt"))
    return _unless_large(x, near)


def _unless_large(size: Real, near: Real) -> Real:
    """``ln(2 size)`` where that is large."""
    return near.where(size.compare("LE", LARGE), size.apply("Ln") + LN2)


def atanh(x: Real) -> Real:
    """``log1p(2a / (1 - a)) / 2``, odd."""
    size = abs(x)
    return (log1p(size * 2.0 / (1.0 - size)) * 0.5).signed_as(x)


def erf(x: Real) -> Real:
    """An odd polynomial near 0, where a difference from 1 cancels."""
    size = abs(x)
    t = 1.0 / (size * ERF_P + 1.0)
    far = (1.0 - t.polynomial(ERF) * t * (-(x * x)).apply("Exp")).signed_as(x)
    near = x * (x * x).polynomial(coefficients.ERF_SMALL) + x
    return near.where(size.compare("LT", ERF_NEAR), far)


def erfc(x: Real) -> Real:
    """``1 - erf(x)``, of all digits where that is small."""
    size = abs(x).at_most(ERFC_LIMIT)
    t = size * 0.5
    w = 1.0 / (t + 1.0)
    s = t * w
    slow = (s * s.polynomial(coefficients.ERFC) + 1.0) * w
    top = size.top
    power = (-(top * top)).apply("Exp") * ((top - size) * (top + size)).apply("Exp")
    positive = power * slow
    return (2.0 - positive).where(x.compare("LT", 0.0), positive)
