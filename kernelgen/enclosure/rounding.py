"""What a data type's rounding may add to a range.

A kernel may round after every operator or keep more digits (a fused multiply-add, half precision computed in float32): both
must lie inside, so a range is widened up to the neighbouring numbers and never narrowed.
"""

from __future__ import annotations

import numpy as np

from kernelgen.enclosure.interval import Array, Interval
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType

UNIT = {FLOAT16: 2.0**-10, BFLOAT16: 2.0**-7, FLOAT32: 2.0**-23, FLOAT64: 2.0**-52}
"""Data type -> the distance of 1 and the next number: a unit in the last place of 1."""

TINY = {FLOAT16: 2.0**-24, BFLOAT16: 2.0**-133, FLOAT32: 2.0**-149, FLOAT64: 2.0**-1074}
"""Data type -> its smallest number above 0."""

FAR_BELOW = 2.0**-10
"""This share of the smallest number and less is certainly 0."""

LARGEST = {FLOAT16: 65504.0, BFLOAT16: 3.3895e38, FLOAT32: 3.4028235677e38, FLOAT64: 1.7976931348e308}


def rounded(value: Interval, kind: DType, is_fused: bool = False) -> Interval:
    """After an operator that gives the number next to the exact result: sums, products, quotients, roots, casts.

    What exceeds float32 and float64 is infinite, but for products, which may be ``fused`` into the sum behind them, and for
    half precision, which may be computed in float32.
    """
    if kind == FLOAT64:
        return inexact(value, kind, 2)  # the bounds themselves are computed in float64
    low, high = _nearest(value.low, kind), _nearest(value.high, kind)
    found = Interval(np.minimum(value.low, low), np.maximum(value.high, high))
    return found if is_fused or kind != FLOAT32 else _overflowed(found, kind)


def _overflowed(value: Interval, kind: DType) -> Interval:
    """Bounds beyond the largest number are infinite."""
    largest = LARGEST[kind]
    low, high = value.low, value.high
    if not (low > largest).any() and not (high < -largest).any():
        return value
    return Interval(np.where(low > largest, np.inf, low), np.where(high < -largest, -np.inf, high))


def _nearest(value: Array, kind: DType) -> Array:
    return value.astype(kind.numpy).astype(np.float64)


def inexact(value: Interval, kind: DType, ulps: float | Array) -> Interval:
    """A ``value`` after an operator whose result in the data type ``kind`` may be so many units in the last place
    (``ulps``) off; what is far below the smallest number is 0.
    """
    value = value if kind in (FLOAT16, BFLOAT16) else value.map(lambda bound: _underflowed(bound, kind))
    low, high = value.low - _slack(value.low, kind, ulps), value.high + _slack(value.high, kind, ulps)
    largest = LARGEST[kind]
    found = Interval(np.where(low < -largest, -np.inf, low), np.where(high > largest, np.inf, high))
    return found if kind in (FLOAT16, BFLOAT16) else _overflowed(found, kind)


def _underflowed(value: Array, kind: DType) -> Array:
    return np.where(np.abs(value) < FAR_BELOW * TINY[kind], 0.0 * value, value)


def _slack(value: Array, kind: DType, ulps: float | Array) -> Array:
    slack = np.abs(value) * (ulps * UNIT[kind]) + ulps * TINY[kind]
    return np.where(np.isfinite(value) & (value != 0), slack, 0.0)


def widened(value: Interval, slack: Array) -> Interval:
    """Both bounds moved apart; infinite and unknown ones stay."""
    low = np.where(np.isfinite(value.low), value.low - slack, value.low)
    high = np.where(np.isfinite(value.high), value.high + slack, value.high)
    return Interval(low, high)
