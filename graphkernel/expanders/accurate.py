"""Functions that Ascend's kernels lack, made of those that they have, to the precision of float32.

MindSpore uses the textbook forms, which lose all digits where the result is small: ``1 - 2 / (exp(2 x) + 1)`` for tanh,
``(exp(x) - exp(-x)) / 2`` for sinh, ``log(1 + x)``. The forms here keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from graphkernel import ops
from graphkernel.ops import Tensor

ERF_LIMIT = 3.92  # from here on erf is 1 in float32
ERF_NUMERATOR = (
    5.3443748503923416e-02,
    7.551701545715332,
    101.62808990478516,
    1393.806152343750,
    5063.79150390625,
    29639.384765625,
)
ERF_DENOMINATOR = (1.0, 31.212858200073242, 398.56964111328125, 3023.12475585937, 13243.366210937, 26267.224609375)


def log1p_by_log(x: Tensor) -> Tensor:
    """log(1 + x) for x >= 0 that is not huge: log(u) * (x / (u - 1)) with u = 1 + x, in which rounding u cancels out.

    Source: W. Kahan, in the HP-15C advanced functions handbook (1982).
    """
    u = 1.0 + x
    return ops.select(u == 1.0, x, ops.log(u) * (x / (u - 1.0)))


def expm1_by_exp(x: Tensor) -> Tensor:
    """exp(x) - 1 for x <= 0: (u - 1) * (x / log(u)) with u = exp(x), by the same trick; -1 where u is nearly 0."""
    u = ops.exp(x)
    exact = (u - 1.0) * (x / ops.log(u))
    return ops.select(u == 1.0, x, ops.select(u < 1e-6, u - 1.0, exact))


def tanh_by_exp(x: Tensor) -> Tensor:
    """1 - 2 / (exp(2 x) + 1), and for |x| < 0.5 the continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...)))."""
    square = x * x
    numerator = x * polynomial(square, (1.0, 105.0, 945.0))
    small = numerator / polynomial(square, (15.0, 420.0, 945.0))
    return ops.select(abs(x) < 0.5, small, 1.0 - 2.0 / (ops.exp(2.0 * x) + 1.0))


def sinh_by_exp(x: Tensor) -> Tensor:
    """(exp(x) - exp(-x)) / 2, and for |x| < 1 the Taylor series x + x^3 / 3! + x^5 / 5! + x^7 / 7! + x^9 / 9!"""
    series = x * polynomial(x * x, (1 / 362880, 1 / 5040, 1 / 120, 1 / 6, 1.0))
    return ops.select(abs(x) < 1.0, series, (ops.exp(x) - ops.exp(-x)) * 0.5)


def erf_by_fraction(x: Tensor) -> Tensor:
    """x * P(x^2) / Q(x^2) with x held to +-3.92: the fraction of MindSpore's Ascend kernels."""
    held = ops.minimum(ops.maximum(x, -ERF_LIMIT), ERF_LIMIT)
    square = held * held
    return held * polynomial(square, ERF_NUMERATOR) / polynomial(square, ERF_DENOMINATOR)


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Horner's scheme, the highest coefficient first."""
    first, second, *rest = coefficients
    leading = x + second if first == 1.0 else x * first + second
    return reduce(lambda value, coefficient: value * x + coefficient, rest, leading)
