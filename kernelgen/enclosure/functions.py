"""Roots, exponentials, logarithms, trigonometric functions and powers of floats.

``ULPS`` says how far a kernel's float32 function may be off: what CUDA's manual states, or what is measured on the CPU,
whichever is more. Half precision is computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.composite.vocabulary import FAST_GELU, by_operator
from kernelgen.enclosure.arithmetic import absolute
from kernelgen.enclosure.interval import Array, Interval, forgotten, settled
from kernelgen.enclosure.rounding import inexact, rounded, widened
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, DType
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic

ULPS: Mapping[Operator, float] = by_operator({
    basic.EXP: 3, basic.EXPM1: 4, basic.LOG: 3, basic.LOG1P: 4, basic.TANH: 4, basic.ERF: 4, basic.SIN: 4, basic.COS: 4,
    basic.TAN: 6, basic.SINH: 4, basic.COSH: 4, basic.ASIN: 4, basic.ACOS: 4, basic.ATAN: 4, basic.ASINH: 4, basic.ACOSH: 4,
    basic.ATANH: 4, basic.RSQRT: 2.5, basic.POW: 10, basic.ATAN2: 4, FAST_GELU: 8, basic.ERFC: 6,
})  # fmt: skip
"""Operator -> units in the last place of float32."""


def _each(compute: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(compute, otypes=[np.float64])


RISING: Mapping[Operator, Callable[[Array], Array]] = by_operator({
    basic.EXP: np.exp, basic.EXPM1: np.expm1, basic.LOG: np.log, basic.LOG1P: np.log1p, basic.TANH: np.tanh,
    basic.ERF: _each(math.erf), basic.SINH: np.sinh, basic.ASIN: np.arcsin, basic.ATAN: np.arctan, basic.ASINH: np.arcsinh,
    basic.ACOSH: np.arccosh, basic.ATANH: np.arctanh,
})  # fmt: skip
"""Functions that never fall where they are defined."""

FALLING: Mapping[Operator, Callable[[Array], Array]] = by_operator({
    basic.ACOS: np.arccos, basic.RSQRT: lambda x: 1 / np.sqrt(x),
    basic.ERFC: _each(math.erfc),
})  # fmt: skip
"""Functions that never rise where they are defined."""

WAVES: Mapping[Operator, Callable[[Array], Array]] = by_operator({basic.SIN: np.sin, basic.COS: np.cos})


def units(op: Operator, kind: DType) -> float:
    """How many units in the last place of a data type a function may be off."""
    return 0.75 if kind in (FLOAT16, BFLOAT16) else ULPS[op]


def function(op: Operator, x: Interval, kind: DType) -> Interval:
    """The function ``op`` of one operand ``x``, as a kernel may compute it in the data type ``kind``."""
    return inexact(_ideal(op, x), kind, units(op, kind))


def _ideal(op: Operator, x: Interval) -> Interval:
    if op in RISING:
        return _rising(RISING[op], x)
    if op in FALLING:
        found = _rising(lambda bound: -FALLING[op](bound), x)
        return Interval.exact(-found.low) if found.is_exact else Interval(-found.high, -found.low)
    if op in WAVES:
        return _wave(WAVES[op], x)
    if op is basic.COSH:
        return _rising(np.cosh, absolute(x))
    return _tangent(x)


def _rising(compute: Callable[[Array], Array], x: Interval) -> Interval:
    low = compute(x.low)
    return Interval.exact(low) if x.is_exact else settled(low, compute(x.high), x)


def _wave(compute: Callable[[Array], Array], x: Interval) -> Interval:
    """Of slope 1 at most, within -1 and 1."""
    middle = compute(x.middle)
    if x.is_exact:
        return Interval.exact(middle)
    return settled(np.maximum(middle - x.radius, -1.0), np.minimum(middle + x.radius, 1.0), x)


def _tangent(x: Interval) -> Interval:
    found = _rising(np.tan, x)
    if x.is_exact:
        return found
    branch = x.map(lambda bound: np.floor(bound / np.pi + 0.5))
    return forgotten(found, branch.low != branch.high)


def root(x: Interval, kind: DType) -> Interval:
    """Sqrt, correctly rounded."""
    return rounded(_rising(np.sqrt, x), kind)


def reciprocal(x: Interval, kind: DType) -> Interval:
    """1 / x, within a unit."""
    low = 1 / x.low
    if x.is_exact:
        return inexact(Interval.exact(low), kind, 1)
    found = settled(1 / x.high, low, x)
    return inexact(forgotten(found, (x.low <= 0) & (x.high >= 0) & ~x.points), kind, 1)


def power(x: Interval, y: Interval, kind: DType) -> Interval:
    """x ** y in the data type ``kind``: a negative x needs an exponent that is a whole number."""
    if x.is_exact and y.is_exact:
        return inexact(Interval.exact(np.power(x.low, y.low)), kind, units(basic.POW, kind))
    corners = [np.power(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    crossing = (x.low < 0) & (x.high > 0) & (y.low > 0)
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    found = settled(np.where(crossing, np.minimum(low, 0.0), low), high, x, y)
    whole = y.points & (y.low == np.rint(y.low))
    lost = ((x.low < 0) & ~whole) | ((x.low <= 0) & (x.high >= 0) & ~x.points & (y.low < 0))
    return inexact(forgotten(found, lost & ~(x.points & y.points)), kind, units(basic.POW, kind))


def angle(y: Interval, x: Interval, kind: DType) -> Interval:
    """Atan2(y, x) in the data type ``kind``, unknown where the operands may lie on both sides of the cut along the
    negative x.
    """
    corners = [np.arctan2(a, b) for a in (y.low, y.high) for b in (x.low, x.high)]
    found = settled(np.minimum.reduce(corners), np.maximum.reduce(corners), y, x)
    cut = (x.low <= 0) & (y.low <= 0) & (y.high >= 0) & ~(x.points & y.points)
    return inexact(forgotten(found, cut), kind, units(basic.ATAN2, kind))


def fast_gelu(x: Interval, kind: DType) -> Interval:
    """x * sigmoid(1.702 x), of slope 1.1 at most; the exponential magnifies the rounding of its operand."""
    middle = x.middle
    value = middle / (1 + np.exp(-1.702 * middle))
    found = widened(Interval.exact(np.where(np.isneginf(middle), np.nan, value)), 1.1 * x.radius)
    ulps = units(FAST_GELU, kind) + (0.0 if kind in (FLOAT16, BFLOAT16) else 4 * np.minimum(np.abs(middle), 100.0))
    return inexact(settled(found.low, found.high, x), kind, ulps)
