"""How far two results are apart, and what an array holds, in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from kernelgen.tensor.boxes import is_text, pairs


def largest_difference(output: Any, reference: Any) -> float:
    """The largest difference over the largest finite value of the reference; of lists and mappings that of any array.

    Infinite where types, texts, not-a-numbers or infinities disagree; 0.0 only when all elements are equal.
    """
    found = pairs(output, reference)
    return float("inf") if found is None else max((_difference(*pair) for pair in found), default=0.0)


def _difference(output: np.ndarray, reference: np.ndarray) -> float:
    if is_text(output) and is_text(reference):
        return 0.0 if output.tolist() == reference.tolist() else float("inf")
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


def typed(value: object) -> str:
    """Data type and shape; of what is no array, what it is."""
    if isinstance(value, np.ndarray):
        return f"{'string' if is_text(value) else value.dtype}{list(value.shape)}"
    return "nothing" if value is None else f"{type(value).__name__} of {len(cast('list[object]', value))}"


def summary(value: object) -> str:
    """Least, mean and greatest value; of texts the first, of a list or mapping what its first entry is."""
    if value is None:
        return ""
    if isinstance(value, list | Mapping):
        items = cast("list[object] | Mapping[object, object]", value)
        first = next(iter(items.values() if isinstance(items, Mapping) else items), None)
        return f"first {typed(first)}" if isinstance(first, np.ndarray | list | Mapping) else f"first {first!r}"
    array = np.asarray(value)
    if array.size == 0:
        return "no elements"
    if is_text(array):
        return f"first {array.reshape(-1)[0]!r}"
    wide = array.astype(np.float64)
    return f"min {wide.min():.6g}, mean {wide.mean():.6g}, max {wide.max():.6g}"
