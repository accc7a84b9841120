"""Comparisons, logic and choices: a truth value that rounding may turn is ``False .. True``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.composite.vocabulary import by_operator
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.elemwise import IS_FINITE, IS_INF, IS_NAN
from kernelgen.tensor.operators.select import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, NOT_EQUAL


def less(x: Interval, y: Interval) -> Interval:
    """x < y; False for NaN."""
    if x.is_exact and y.is_exact:
        return Interval.exact(np.less(x.low, y.low))
    return _perhaps(np.less(x.high, y.low), np.less(x.low, y.high), x, y)


def less_equal(x: Interval, y: Interval) -> Interval:
    """x <= y; False for NaN."""
    if x.is_exact and y.is_exact:
        return Interval.exact(np.less_equal(x.low, y.low))
    return _perhaps(np.less_equal(x.high, y.low), np.less_equal(x.low, y.high), x, y)


def equal(x: Interval, y: Interval) -> Interval:
    """x == y; False for NaN."""
    if x.is_exact and y.is_exact:
        return Interval.exact(np.equal(x.low, y.low))
    both = (x.low == x.high) & (y.low == y.high)
    return _perhaps(both & (x.low == y.low), (x.low <= y.high) & (y.low <= x.high), x, y)


def inverted(x: Interval) -> Interval:
    """Not x."""
    truth = condition(x)
    return Interval.exact(~truth.low) if truth.is_exact else Interval(~truth.high, ~truth.low)


COMPARISONS: Mapping[Operator, Callable[[Interval, Interval], Interval]] = by_operator({
    LESS: less, LESS_EQUAL: less_equal, EQUAL: equal, NOT_EQUAL: lambda x, y: inverted(equal(x, y)),
    GREATER: lambda x, y: less(y, x), GREATER_EQUAL: lambda x, y: less_equal(y, x),
})  # fmt: skip

TESTS: Mapping[Operator, Callable[[Array], Array]] = by_operator(
    {IS_NAN: np.isnan, IS_INF: np.isinf, IS_FINITE: np.isfinite}
)


def condition(x: Interval) -> Interval:
    """A truth value; of a number, whether it is not 0."""
    if x.low.dtype.kind == "b":
        return x
    if x.is_exact:
        return Interval.exact(x.low != 0)
    zero = Interval.exact(np.zeros((), x.low.dtype))
    return inverted(equal(x, zero))


def test(op: Operator, x: Interval) -> Interval:
    """IsNan, IsInf, IsFinite."""
    low = TESTS[op](x.low)
    if x.is_exact or x.low.dtype.kind != "f":
        return Interval.exact(low)
    high = TESTS[op](x.high)
    return Interval((low & high) & ~x.unknown, low | high | x.unknown)


def select(truth: Interval, x: Interval, y: Interval) -> Interval:
    """x where the condition ``truth`` holds, else y; either where rounding decides."""
    truth = condition(truth)
    low, high = np.where(truth.low, x.low, y.low), np.where(truth.low, x.high, y.high)
    if truth.is_exact:
        return Interval.exact(low) if x.is_exact and y.is_exact else Interval(low, high)
    open_ = truth.low != truth.high
    either_low, either_high = np.minimum(x.low, y.low), np.maximum(x.high, y.high)
    low, high = np.where(open_, either_low, low), np.where(open_, either_high, high)
    if low.dtype.kind != "f":
        return Interval(low, high)
    lost = open_ & (np.isnan(low) | np.isnan(high) | x.unknown | y.unknown)
    both = np.isnan(x.low) & np.isnan(y.low)
    lost &= ~both
    return Interval(np.where(lost, -np.inf, low), np.where(lost, np.inf, high))


def _perhaps(surely: Array, perhaps: Array, *operands: Interval) -> Interval:
    for operand in operands:
        perhaps = perhaps | operand.unknown
        surely = surely & ~operand.unknown
    return Interval(surely, perhaps)
