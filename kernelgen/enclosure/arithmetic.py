"""Sums, products and quotients of floats, and what else is exact or correctly rounded."""

from __future__ import annotations

import numpy as np

from kernelgen.enclosure.interval import Array, Interval, forgotten, settled
from kernelgen.enclosure.rounding import rounded
from kernelgen.tensor.dtypes import FLOAT16, DType


def add(x: Interval, y: Interval, kind: DType) -> Interval:
    """x + y, rounded to the data type ``kind``."""
    if x.is_exact and y.is_exact:
        return rounded(Interval.exact(x.low + y.low), kind)
    return rounded(settled(x.low + y.low, x.high + y.high, x, y), kind)


def negated(x: Interval) -> Interval:
    """-x."""
    return Interval.exact(-x.low) if x.is_exact else Interval(-x.high, -x.low)


def subtract(x: Interval, y: Interval, kind: DType) -> Interval:
    """x - y, rounded to the data type ``kind``."""
    return add(x, negated(y), kind)


def multiply(x: Interval, y: Interval, kind: DType) -> Interval:
    """x * y, rounded to the data type ``kind``."""
    return rounded(_of_corners(np.multiply, x, y), kind, is_fused=True)


def square(x: Interval, kind: DType) -> Interval:
    """x * x, which is never negative."""
    size = absolute(x)
    found = (
        Interval.exact(size.low * size.low) if x.is_exact else settled(size.low * size.low, size.high * size.high, size)
    )
    return rounded(found, kind)


def divide(x: Interval, y: Interval, kind: DType) -> Interval:
    """x / y, rounded to the data type ``kind``; unknown where y may be 0 and need not be."""
    quotient = _of_corners(np.divide, x, y)
    if y.is_exact:
        return rounded(quotient, kind)
    spread = (y.low <= 0) & (y.high >= 0) & ~y.points
    return rounded(forgotten(quotient, spread), kind)


def absolute(x: Interval) -> Interval:
    """|x|."""
    if x.is_exact:
        return Interval.exact(np.abs(x.low))
    low, high = np.abs(x.low), np.abs(x.high)
    crossing = (x.low < 0) & (x.high > 0)
    return settled(np.where(crossing, 0.0, np.minimum(low, high)), np.maximum(low, high), x)


def sign(x: Interval) -> Interval:
    """-1, 0 or 1; NaN stays."""
    return Interval.exact(np.sign(x.low)) if x.is_exact else settled(np.sign(x.low), np.sign(x.high), x)


def larger(x: Interval, y: Interval) -> Interval:
    """The larger one; NaN wins."""
    if x.is_exact and y.is_exact:
        return Interval.exact(np.maximum(x.low, y.low))
    return settled(np.maximum(x.low, y.low), np.maximum(x.high, y.high), x, y)


def smaller(x: Interval, y: Interval) -> Interval:
    """The smaller one; NaN wins."""
    return negated(larger(negated(x), negated(y)))


def add_smallest(x: Interval, kind: DType) -> Interval:
    """AddMinValue: plus the smallest subnormal float16, or the smallest normal float32."""
    return add(x, Interval.exact(np.asarray(2.0**-24 if kind == FLOAT16 else 2.0**-126)), kind)


def whole_quotient(x: Interval, y: Interval, kind: DType) -> Interval:
    """FloorDiv: x / y in the data type ``kind``, rounded down; with an infinity it is what numpy's algorithm, which
    divides what the remainder leaves, makes of it: 1 // -inf is -1, and inf // 1 is NaN.
    """
    found = divide(x, y, kind).map(np.floor)
    ends = [np.floor_divide(end, y.low) for end in (x.low, x.high)]
    finite = np.isfinite(x.low) & np.isfinite(x.high)
    special = y.points & (finite & np.isinf(y.low) | x.points & np.isinf(x.low))
    return Interval(np.where(special, np.minimum(*ends), found.low), np.where(special, np.maximum(*ends), found.high))


def remainder(x: Interval, y: Interval, floored: bool, kind: DType) -> Interval:
    """Mod (the sign of x) or, ``floored``, FloorMod (of y), in the data type ``kind``; known where the whole part of
    the quotient is.
    """
    if x.is_exact and y.is_exact:
        return rounded(Interval.exact((np.mod if floored else np.fmod)(x.low, y.low)), kind)
    quotient = divide(x, y, kind)
    whole = quotient.map(np.floor if floored else np.trunc)
    rest = subtract(x, multiply(Interval.exact(whole.low), y, kind), kind)
    return forgotten(rest, whole.low != whole.high)


def _of_corners(function: np.ufunc, x: Interval, y: Interval) -> Interval:
    """A function that is monotone in each operand: its extremes are those of the bounds."""
    first: Array = function(x.low, y.low)
    if x.is_exact and y.is_exact:
        return Interval.exact(first)
    corners = [first]
    if not y.is_exact:
        corners.append(function(x.low, y.high))
    if not x.is_exact:
        corners.append(function(x.high, y.low))
    if not (x.is_exact or y.is_exact):
        corners.append(function(x.high, y.high))
    return settled(np.minimum.reduce(corners), np.maximum.reduce(corners), x, y)
