"""A range for every element of a tensor, and ranges that say nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Interval:
    """Element by element ``low <= x <= high``, both bounds included.

    Floats of any precision are float64 here, integers and truth values have their own data type. Both bounds NaN: the
    element is NaN. Bounds ``-inf, inf``: anything, NaN too. One array for both says that all elements are exact.
    """

    low: Array
    high: Array

    @staticmethod
    def exact(value: Array) -> Interval:
        """Ranges of one number each."""
        return Interval(value, value)

    @property
    def is_exact(self) -> bool:
        """Whether there is one array for both bounds."""
        return self.low is self.high

    @property
    def points(self) -> Array:
        """Where the range is one number, NaN included; 0 and -0 are two, of which quotients tell."""
        if self.is_exact:
            return np.ones(self.low.shape, bool)
        same = self.low == self.high
        if self.low.dtype.kind == "f":
            same &= np.signbit(self.low) == np.signbit(self.high)
        return same | (np.isnan(self.low) & np.isnan(self.high))

    @property
    def unknown(self) -> Array:
        """Where the range says nothing."""
        if self.is_exact or self.low.dtype.kind != "f":
            return np.zeros(self.low.shape, bool)
        return np.isneginf(self.low) & np.isposinf(self.high)

    @property
    def magnitude(self) -> Array:
        """The largest absolute value."""
        return np.abs(self.low) if self.is_exact else np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def middle(self) -> Array:
        """Between the bounds; the number itself where it is exact."""
        if self.is_exact:
            return self.low
        with np.errstate(invalid="ignore"):
            return np.where(self.low == self.high, self.low, self.low / 2 + self.high / 2)

    @property
    def radius(self) -> Array:
        """How far the bounds are from the middle."""
        with np.errstate(invalid="ignore"):
            return np.where(self.points, 0.0, self.high / 2 - self.low / 2)

    def map(self, move: Callable[[Array], Array]) -> Interval:
        """Both bounds through a function that never falls, or that only moves elements."""
        low = move(self.low)
        return Interval.exact(low) if self.is_exact else Interval(low, move(self.high))


def settled(low: Array, high: Array, *operands: Interval) -> Interval:
    """The range of an operator's results, unknown where an operand is, and where it may be NaN but need not be."""
    low, high = np.asarray(low), np.asarray(high)
    lost = np.isnan(low) | np.isnan(high)
    if lost.any():
        exact = np.ones(low.shape, bool)
        for operand in operands:
            exact = exact & operand.points
        lost &= ~exact
    for operand in operands:
        if not operand.is_exact:
            lost = lost | operand.unknown
    return forgotten(Interval(low, high), lost)


def forgotten(value: Interval, where: Array) -> Interval:
    """The range, with nothing said where told."""
    if not where.any():
        return value
    where = np.broadcast_to(where, value.low.shape)
    return Interval(np.where(where, -np.inf, value.low), np.where(where, np.inf, value.high))
