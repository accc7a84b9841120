"""Operators on integers: exact, and wrapping around as machines do; ranges that leave the data type say nothing.

Ranges are computed with in float64, which holds whole numbers up to 2^53: beyond, only an exact element is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from kernelgen.enclosure.interval import Array, Interval
from kernelgen.tensor.dtypes import DType

WHOLE = 2.0**53
"""Float64 holds all whole numbers up to this one."""


def on_integers(
    compute: Callable[..., Any], operands: Sequence[Interval], kind: DType, monotone: Array | bool = True
) -> Interval:
    """``compute`` of integer ``operands``, modulo the width of the data type ``kind``.

    Of ranges it is taken at the corners, where it is ``monotone`` in each operand; elsewhere nothing is known of them.
    """
    found = np.asarray(compute(*(x.low for x in operands))).astype(kind.numpy)
    if all(x.is_exact for x in operands):
        return Interval.exact(found)
    wide = [(x.low.astype(np.float64), x.high.astype(np.float64)) for x in operands]
    corners = [compute(*corner) for corner in product(*wide)]
    known = _all(monotone, *(np.abs(end) <= WHOLE for ends in (*wide, corners) for end in ends))
    ends = (np.where(known, end(corners), np.nan) for end in (np.minimum.reduce, np.maximum.reduce))
    ranges, points = as_integers(Interval(*ends), kind), _all(*(x.points for x in operands))
    return Interval(np.where(points, found, ranges.low), np.where(points, found, ranges.high))


def summed_integers(add_up: Callable[[Array], Array], x: Interval, kind: DType) -> Interval:
    """What ``add_up`` makes of integers ``x``, modulo the width of the data type ``kind``."""
    if x.is_exact:
        return Interval.exact(add_up(x.low))
    low, high, sizes = (add_up(bound.astype(np.float64)) for bound in (x.low, x.high, x.magnitude))
    known = sizes <= WHOLE
    return as_integers(Interval(np.where(known, low, np.nan), np.where(known, high, np.nan)), kind)


def folded_integers(fold: Callable[..., Array], terms: Sequence[Interval], kind: DType) -> Interval:
    """What ``fold`` makes of integers ``terms`` in the data type ``kind``: any number where one takes part that is not exact.

    ``fold`` itself tells where: it makes another number of a power of two than of 1, as sums, products and quotients of
    positive numbers do. Each operand has a power of its own, lest a quotient hides them, in float64, lest a sum wraps around.
    """
    exact = Interval.exact(fold(*(x.low for x in terms)))
    if all(x.is_exact for x in terms):
        return exact
    usual = fold(*(np.ones(x.low.shape) for x in terms))
    told = fold(*(np.where(x.points, 1.0, 2.0**place) for place, x in enumerate(terms, 1)))
    return _any_number(exact, told != usual, kind)


def _any_number(value: Interval, where: Array, kind: DType) -> Interval:
    """The range, with all numbers of the data type ``kind`` where told."""
    info = np.iinfo(kind.numpy)
    least, most = kind.numpy.type(info.min), kind.numpy.type(info.max)
    return Interval(np.where(where, least, value.low), np.where(where, most, value.high))


def _all(*conditions: Array | bool) -> Array:
    return np.logical_and.reduce(np.broadcast_arrays(*conditions))


def as_integers(value: Interval, kind: DType) -> Interval:
    """Floats cut towards zero, of which NaN and what does not fit may be any number; integers wrap around."""
    if value.low.dtype.kind in "iub":
        found = value.map(lambda bound: bound.astype(kind.numpy))
        wraps = ~value.points & ((found.low != value.low) | (found.high != value.high))
        return _any_number(found, wraps, kind) if wraps.any() else found
    info = np.iinfo(kind.numpy)
    low, high = np.trunc(value.low), np.trunc(value.high)
    inside = (low >= float(info.min)) & (high < float(info.max) + 1)
    least, most = _filled(low, inside, info.min, kind), _filled(high, inside, info.max, kind)
    return Interval.exact(least) if value.is_exact and inside.all() else Interval(least, most)


def _filled(value: Array, inside: Array, other: int, kind: DType) -> Array:
    return np.where(inside, np.where(inside, value, 0).astype(kind.numpy), kind.numpy.type(other))
