"""Errors in units in the last place."""

from __future__ import annotations

import numpy as np


def ulps(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest distance in units in the last place of float32; infinities and NaN must agree."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    special = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    spacing = np.spacing(np.maximum(np.abs(rounded[~special]), np.float32(2.0**-126))).astype(np.float64)
    return float(np.max(np.abs(got[~special].astype(np.float64) - exact[~special]) / spacing, initial=0.0))
