"""How near is near enough: exactly for integers and booleans, a few units in the last place for floats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.fuzz.models.contents import is_float, largest, unit
from tests.fuzz.models.oracle import Array

RELATIVE, ABSOLUTE = 64, 16
"""Units in the last place: of the element, and of the largest in its tensor (sums cancel)."""
MOVED = 4.0
"""How many times as far as small changes move a result it may lie away."""


def differs(expected: Array, found: Array, moved: Sequence[Array] = ()) -> str | None:
    """What is wrong with ``found``, or None. ``moved`` holds what comes out when all values are changed a little."""
    if expected.dtype != found.dtype:
        return f"data type {found.dtype} instead of {expected.dtype}"
    if expected.shape != found.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    far = _far(expected, found, [other for other in moved if other.shape == expected.shape])
    if not far.any():
        return None
    place = tuple(int(index) for index in np.argwhere(far)[0])
    return f"{int(far.sum())} of {far.size} elements, first at {place}: {found[place]!r} instead of {expected[place]!r}"


def _far(expected: Array, found: Array, moved: Sequence[Array]) -> Array:
    """Where an element is too far away."""
    unstable = np.zeros(expected.shape, bool)
    if not is_float(expected.dtype):
        for other in moved:
            unstable |= other != expected
        return np.asarray((expected != found) & ~unstable)
    with np.errstate(all="ignore"):
        e, f = expected.astype(np.float64), found.astype(np.float64)
        allowed = _allowed(expected, e)
        for other in moved:
            o = other.astype(np.float64)
            shift = np.abs(o - e)
            allowed = np.maximum(allowed, MOVED * np.where(np.isfinite(shift), shift, 0.0))
            unstable |= ~(
                (o == e) | (np.isnan(o) & np.isnan(e)) | np.isfinite(shift)
            )  # another infinity, NaN, or neither
        same = (e == f) | (np.isnan(e) & np.isnan(f))
        return np.asarray(~(same | (np.abs(e - f) <= allowed) | unstable))


def _allowed(expected: Array, wide: Array) -> Array:
    """The distance that rounding explains; nothing but itself is near an infinity or NaN."""
    of, eps = expected.dtype, unit(expected.dtype)
    finite = np.abs(wide[np.isfinite(wide)])
    most = float(finite.max(initial=0.0))
    room = RELATIVE * eps if eps < 1e-4 else 4 * eps
    share = ABSOLUTE * eps if eps < 1e-4 else 2 * eps
    near = room * np.abs(wide) + share * most if most < largest(of) / 1e3 else room * np.abs(wide)
    return np.where(np.isfinite(wide), near, 0.0)
