"""Cast between data types with the manual's rounding modes. To integers it saturates, and NaN becomes 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, DType


def _half_away(values: np.ndarray) -> np.ndarray:
    return np.trunc(values + np.copysign(0.5, values))


TO_INTEGER: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "CAST_NONE": np.rint,
    "CAST_RINT": np.rint,
    "CAST_FLOOR": np.floor,
    "CAST_CEIL": np.ceil,
    "CAST_ROUND": _half_away,
    "CAST_TRUNC": np.trunc,
}


def cast(values: np.ndarray, to: DType, mode: str) -> np.ndarray:
    """The values as another type. CAST_NONE rounds to nearest even where a value is not exact."""
    source = values.dtype
    with np.errstate(all="ignore"):
        if to.is_integer and source.kind not in "iu":
            return _to_integer(values.astype(np.float64), to, mode)
        if to.is_integer:
            low, high = _limits(to)
            return np.clip(values.astype(np.int64), low, high).astype(to.numpy)
        if source.itemsize <= to.itemsize and source.kind not in "iu":
            return values.astype(to.numpy)
        return _narrow(values.astype(np.float64), to, mode)


def _limits(dtype: DType) -> tuple[int, int]:
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _to_integer(values: np.ndarray, to: DType, mode: str) -> np.ndarray:
    low, high = _limits(to)
    whole = np.nan_to_num(TO_INTEGER[mode](values), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = np.clip(whole, low, high if to.bits < 64 else np.nextafter(float(high), 0))
    return np.where(whole >= high, high, inside.astype(np.int64)).astype(to.numpy)


def _narrow(values: np.ndarray, to: DType, mode: str) -> np.ndarray:
    """Floats to a float with fewer digits: the nearest, then one step where the mode asks for the other neighbour."""
    nearest = values.astype(np.float32).astype(to.numpy) if to is BFLOAT16 else values.astype(to.numpy)
    if mode in ("CAST_NONE", "CAST_RINT") or to not in (FLOAT16, BFLOAT16):
        return nearest
    exact = nearest.astype(np.float64)
    bits = nearest.view(np.int16)
    away = np.abs(exact) > np.abs(values)
    toward_zero = np.where(away, bits - 1, bits).astype(np.int16)
    inexact = (exact != values) & np.isfinite(values)
    outward = (toward_zero + 1).astype(np.int16)
    match mode:
        case "CAST_TRUNC":
            chosen = toward_zero
        case "CAST_FLOOR":
            chosen = np.where(inexact & (values < 0), outward, toward_zero)
        case "CAST_CEIL":
            chosen = np.where(inexact & (values > 0), outward, toward_zero)
        case "CAST_ODD":
            chosen = np.where(inexact, toward_zero | 1, toward_zero)
        case _:  # CAST_ROUND: a tie goes away from zero
            half = np.abs(values - toward_zero.view(to.numpy).astype(np.float64))
            other = np.abs(outward.view(to.numpy).astype(np.float64) - values)
            chosen = np.where(inexact & (half >= other), outward, toward_zero)
    return np.where(np.isfinite(values), chosen, bits).astype(np.int16).view(to.numpy)
