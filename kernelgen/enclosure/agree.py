"""Are the results of a kernel where they must lie?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kernelgen.enclosure.interval import Array, Interval


@dataclass(frozen=True)
class Difference:
    """``error`` is the largest distance from the middle of a range, where it is finite; ``fault`` says what lies outside,
    and is empty when nothing does."""

    error: float
    fault: str = ""


def agree(names: Sequence[str], found: Sequence[Array], wanted: Sequence[Interval]) -> Difference:
    """The worst of several results ``found``, each against the range ``wanted`` of it; ``names`` are theirs, and the
    fault is the first.
    """
    worst, fault = 0.0, ""
    for name, result, value in zip(names, found, wanted, strict=True):
        apart = difference(result, value)
        worst = max(worst, apart.error)
        fault = fault or (f"{name}: {apart.fault}" if apart.fault else "")
    return Difference(worst, fault)


def difference(found: Array, wanted: Interval) -> Difference:
    """One result. Integers and truth values lie in ranges, too, most of them of one number."""
    if found.shape != wanted.low.shape:
        return Difference(np.inf, f"shape {found.shape}, expected {wanted.low.shape}")
    if wanted.low.dtype.kind == "c":
        parts = (difference(part(found), wanted.map(part)) for part in (np.real, np.imag))
        return max(parts, key=lambda each: (bool(each.fault), each.error))
    value = found.astype(np.float64) if wanted.low.dtype == np.float64 else found
    with np.errstate(all="ignore"):
        wrong = ~((value >= wanted.low) & (value <= wanted.high))
        if wrong.any():
            wrong &= ~wanted.unknown
            if value.dtype.kind == "f":
                wrong &= ~(np.isnan(value) & np.isnan(wanted.low))
        apart = np.abs(value - wanted.middle) if value.dtype.kind == "f" else wrong.astype(float)
        error = float(np.max(apart, initial=0.0, where=np.isfinite(apart)))
    return Difference(error, first_wrong(wrong, found, partial(_expected, wanted)))


def _expected(wanted: Interval, place: tuple[int, ...]) -> str:
    low, high = wanted.low[place], wanted.high[place]
    return f"{low}" if low == high or low != low else f"{low} to {high}"


def first_wrong(wrong: Array, found: Array, expected: Callable[[tuple[int, ...]], str]) -> str:
    """How many elements are ``wrong``, and the first: what was ``found``, what was ``expected`` there; empty for none."""
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return (
        f"{count} of {wrong.size} elements differ, first at {list(first)}: {found[first]}, expected {expected(first)}"
    )
