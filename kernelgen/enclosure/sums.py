"""Reductions, products and scans: the roundings of n additions in any order.

The error of a sum of n terms is at most ``n u`` times the sum of their sizes, ``u`` being half a unit in the last place; that
of roundings which do not all go one way stays below ``6 sqrt(n) u`` but for one sum in 10^7 (Higham and Mary, "A new approach
to probabilistic rounding error analysis", 2019). The smaller of the two is allowed. Half precision is summed in float32.

A sum of -0 alone is -0 where it starts from its first term, and 0 where it starts from 0: both are right, and a quotient by it
is either infinity.

Where the finite terms alone may leave the range on the way, a sum may be anything: some order adds the largest first, and
an infinity of one sign that is made on the way meets one of the other sign among the terms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelgen.enclosure.interval import Array, Interval, forgotten
from kernelgen.enclosure.rounding import LARGEST, TINY, UNIT, rounded, widened
from kernelgen.tensor.dtypes import FLOAT32, FLOAT64, DType

SPREAD = 6.0
EXACT = 2.0**24
"""Whole numbers up to this are added without rounding in float32."""

Move = Callable[[Array], Array]


def summed(value: Interval, add_up: Move, kind: DType, terms: Array | float) -> Interval:
    """A sum of floats of the data type ``kind``: ``add_up`` maps the terms, whose ranges are ``value``, to their sums,
    ``terms`` says how many there are in each.
    """
    low = add_up(value.low)
    high = low if value.is_exact else add_up(value.high)
    sizes = add_up(np.abs(value.low)) if value.is_exact else add_up(value.magnitude)
    lost = _any(add_up, value.unknown) if not value.is_exact else np.zeros(low.shape, bool)
    if not value.is_exact:
        lost = lost | ((np.isnan(low) | np.isnan(high)) & _any(add_up, ~value.points))
    finite = sizes if np.isfinite(sizes).all() else add_up(_finite(value.magnitude))
    overflow = _overflows(finite, kind, add_up, value.middle)
    found = _with_roundings(Interval(low, high), sizes, overflow, kind, terms, _is_whole(value, sizes))
    found = rounded(forgotten(found, lost), kind)
    if not np.signbit(value.low).any() or sizes.all():
        return found
    return _of_either_sign(found, (sizes == 0) & (add_up(1.0 - np.signbit(value.low)) == 0))


def multiplied(
    x: Interval, y: Interval, product: Callable[[Array, Array], Array], kind: DType, terms: Array | float
) -> Interval:
    """A sum of products in the data type ``kind``: ``product(x, y)`` is linear in both operands, and ``terms`` says
    how many terms each result has.
    """
    left, right = x.middle, y.middle
    middle = product(left, right)
    sizes = product(np.abs(left), np.abs(right))
    slack = np.zeros(middle.shape)
    if not x.is_exact:
        slack = slack + product(_finite(x.radius), _finite(np.abs(right)))
    if not y.is_exact:
        slack = slack + product(_finite(np.abs(left)) + _finite(x.radius), _finite(y.radius))
    whole = x.is_exact and y.is_exact and _whole(left) and _whole(right) and _below(sizes)
    if not whole:  # a product among the subnormal numbers is rounded to a multiple of the smallest
        slack = slack + np.where(sizes > 0, terms * TINY[_summing(kind)] / 2, 0.0)
    found = widened(Interval(middle, middle.copy()), slack)
    finite = sizes if np.isfinite(sizes).all() else product(np.abs(_finite(left)), np.abs(_finite(right)))
    overflow = _overflows(finite + slack, kind, product, left, right)
    found = _with_roundings(found, sizes + slack, overflow, kind, terms, whole)
    lost: list[Array] = []
    if not x.is_exact:
        lost += [product(_flag(x), np.ones_like(right)), product(_may_vanish(x), _infinite(right))]
    if not y.is_exact:
        lost += [product(np.ones_like(left), _flag(y)), product(_infinite(left), _may_vanish(y))]
    for where in lost:
        found = forgotten(found, where > 0)
    found, minus = rounded(found, kind), [np.signbit(factor).astype(np.float64) for factor in (left, right)]
    if sizes.all() or not any(each.any() for each in minus):
        return found
    plus = product(*minus) + product(*(1 - each for each in minus))
    return _of_either_sign(found, (sizes + slack == 0) & (plus == 0))


def _of_either_sign(found: Interval, where: Array) -> Interval:
    """The range of a sum, 0 or -0 ``where`` all of its terms are -0."""
    return Interval(np.where(where, -0.0, found.low), np.where(where, 0.0, found.high)) if where.any() else found


def _may_vanish(value: Interval) -> Array:
    """1 where a range has 0 in it: an infinite factor makes that NaN."""
    return np.where((value.low <= 0) & (value.high >= 0), 1.0, 0.0)


def _infinite(value: Array) -> Array:
    return np.where(np.isinf(value), 1.0, 0.0)


def product_of(value: Interval, fold: Move, kind: DType, terms: float) -> Interval:
    """A product of all terms of ``value`` in the data type ``kind``: ``fold`` multiplies them, ``terms`` says how many
    there are in each.

    Their relative errors add up, with half a unit for every multiplication.
    """
    middle = fold(value.middle)
    if value.is_exact:
        spread = fold(np.ones_like(value.low))
    else:
        with np.errstate(all="ignore"):
            relative = np.where(value.radius == 0, 0.0, value.radius / np.abs(value.middle))
        spread = fold(1 + relative)
    growth = spread * (1 + UNIT[_summing(kind)] / 2) ** terms - 1
    slack = np.abs(middle) * growth
    found = widened(Interval(middle, middle.copy()), np.nan_to_num(slack, nan=np.inf))
    lost = np.zeros(middle.shape, bool) if value.is_exact else _any_folded(fold, value) | ~np.isfinite(growth)
    whole = value.is_exact and _whole(value.low) and bool((np.abs(middle) < EXACT).all())
    return forgotten(Interval.exact(middle) if whole else rounded(found, kind), lost)


def _any_folded(fold: Move, value: Interval) -> Array:
    return fold(np.where(value.unknown, 0.0, 1.0)) == 0


def _with_roundings(
    found: Interval, sizes: Array, overflow: Array, kind: DType, terms: Array | float, whole: bool
) -> Interval:
    """The range of a sum with its roundings; ``sizes`` adds up the sizes of all terms, nothing is known at an ``overflow``."""
    if whole:
        return Interval.exact(found.low) if np.array_equal(found.low, found.high) else found
    roundings = np.minimum(terms, SPREAD * np.sqrt(terms)) * UNIT[_summing(kind)] / 2
    return forgotten(widened(found, _finite(roundings * sizes)), overflow)


def _overflows(finite: Array, kind: DType, combine: Callable[..., Array], *factors: Array) -> Array:
    """Where ``finite``, the sizes of the finite terms, leave the range, and infinities and NaN of ``combine(*factors)``
    do not make it NaN whatever the order. That is asked of factors of size one, which cannot overflow themselves.
    """
    beyond = finite > LARGEST[_summing(kind)]
    if not beyond.any():
        return beyond
    return beyond & ~np.isnan(combine(*(np.where(np.isfinite(each), np.sign(each), each) for each in factors)))


def _summing(kind: DType) -> DType:
    return kind if kind == FLOAT64 else FLOAT32


def _is_whole(value: Interval, sizes: Array) -> bool:
    return value.is_exact and _whole(value.low) and _below(sizes)


def _whole(value: Array) -> bool:
    return bool((value == np.rint(value)).all())


def _below(sizes: Array) -> bool:
    return bool((sizes < EXACT).all())


def _any(add_up: Move, where: Array) -> Array:
    return add_up(where.astype(np.float64)) > 0 if where.any() else np.zeros((), bool)


def _flag(value: Interval) -> Array:
    return (~np.isfinite(value.radius) | value.unknown).astype(np.float64)


def _finite(value: Array) -> Array:
    return np.where(np.isfinite(value), value, 0.0)
