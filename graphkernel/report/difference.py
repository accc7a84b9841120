"""How far two results are apart, and what an array holds, in a few numbers."""

from __future__ import annotations

import numpy as np


def largest_difference(output: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference over the largest finite value of the reference.

    Infinite where types, not-a-numbers or infinities disagree; 0.0 only when all elements are equal.
    """
    if output.shape != reference.shape or output.dtype != reference.dtype:
        return float("inf")
    a, b = output.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    found, wanted = a[finite], b[finite]
    if not np.isfinite(found).all():
        return float("inf")
    if np.array_equal(found, wanted):
        return 0.0
    with np.errstate(over="ignore"):  # next to a reference of zeros every difference is large
        return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), np.finfo(np.float64).tiny))


def summary(array: np.ndarray) -> str:
    """Least, mean and greatest value."""
    if array.size == 0:
        return "no elements"
    wide = array.astype(np.float64)
    return f"min {wide.min():.6g}, mean {wide.mean():.6g}, max {wide.max():.6g}"
