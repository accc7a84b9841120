"""Operators on integers: exact, and wrapping around as machines do; ranges that leave the data type say nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from kernelgen.enclosure.interval import Array, Interval
from kernelgen.tensor.dtypes import DType


def on_integers(compute: Callable[..., Any], operands: Sequence[Interval], kind: DType) -> Interval:
    """``compute`` of integer ``operands``, modulo the width of the data type ``kind``.

    Of ranges it is taken at the corners, which holds for sums, products, extremes and what is monotone.
    """
    if all(x.is_exact for x in operands):
        return Interval.exact(np.asarray(compute(*(x.low for x in operands))).astype(kind.numpy))
    wide = [(x.low.astype(np.float64), x.high.astype(np.float64)) for x in operands]
    corners = [compute(*corner) for corner in product(*wide)]
    return as_integers(Interval(np.minimum.reduce(corners), np.maximum.reduce(corners)), kind)


def as_integers(value: Interval, kind: DType) -> Interval:
    """Floats cut towards zero; NaN and what does not fit may be any number."""
    if value.low.dtype.kind in "iub":
        return value.map(lambda bound: bound.astype(kind.numpy))
    info = np.iinfo(kind.numpy)
    low, high = np.trunc(value.low), np.trunc(value.high)
    inside = (low >= float(info.min)) & (high < float(info.max) + 1)
    least, most = _filled(low, inside, info.min, kind), _filled(high, inside, info.max, kind)
    return Interval.exact(least) if value.is_exact and inside.all() else Interval(least, most)


def _filled(value: Array, inside: Array, other: int, kind: DType) -> Array:
    return np.where(inside, np.where(inside, value, 0).astype(kind.numpy), kind.numpy.type(other))
