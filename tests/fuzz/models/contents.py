"""Numbers for tensors: from a range, or with the values that break things."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.models.oracle import BFLOAT16, Array

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
DATA_TYPES = (*FLOATS, *INTEGERS, "bool")
WEIGHTS = {
    "float32": 10,
    "float64": 4,
    "float16": 4,
    "bfloat16": 2,
    "int32": 4,
    "int64": 5,
    "int8": 2,
    "uint8": 3,
    "bool": 3,
}
"""How often a data type is drawn; those that are not named: once."""


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The data type of a name."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def is_float(of: np.dtype[Any]) -> bool:
    """Whether it is one of the four."""
    return of == BFLOAT16 or of.kind == "f"


def content(
    numbers: np.random.Generator, of: np.dtype[Any], shape: tuple[int, ...], low: float | None, high: float | None
) -> Array:
    """Evenly drawn from ``low`` to ``high``; without a range, from what arithmetic can go on with."""
    if of.kind == "b":
        return np.asarray(numbers.random(shape) < 0.5)
    if is_float(of):
        begin, end = -3.0 if low is None else low, 3.0 if high is None else high
        return np.asarray(begin + (end - begin) * numbers.random(shape)).astype(of)
    info = np.iinfo(of)
    begin = max(info.min, -9 if low is None else int(np.ceil(low)))
    end = min(info.max, 9 if high is None else int(np.floor(high)))
    return np.asarray(numbers.integers(begin, max(begin, end), shape, dtype=np.int64, endpoint=True)).astype(of)


def special(numbers: np.random.Generator, given: Array) -> Array:
    """The same with a fifth of the elements replaced by values that break things."""
    if given.size == 0 or given.dtype.kind == "b":
        return given
    odd = odd_values(given.dtype)
    chosen = numbers.random(given.shape) < 0.2
    return np.where(chosen, odd[numbers.integers(0, len(odd), given.shape)], given)


def odd_values(of: np.dtype[Any]) -> Array:
    """NaN, infinities, signed zeros, denormals and the largest; of integers the extremes."""
    if not is_float(of):
        info = np.iinfo(of)
        return np.array([info.min, info.max, info.max - 1, 0, 1, info.max // 2 + 1], of)
    tiny = np.float64(smallest_normal(of))
    values = [np.nan, np.inf, -np.inf, -0.0, 0.0, tiny / 4, -tiny / 4, tiny, 1.0, -1.0, 0.5, 2.5, -1.5]
    return np.array([*values, largest(of), -largest(of)], np.float64).astype(of)


def smallest_normal(of: np.dtype[Any]) -> float:
    """The least positive normal number."""
    return 2.0**-126 if of == BFLOAT16 else float(np.finfo(of).smallest_normal)


def largest(of: np.dtype[Any]) -> float:
    """The largest finite number."""
    return 3.3895314e38 if of == BFLOAT16 else float(np.finfo(of).max)


def unit(of: np.dtype[Any]) -> float:
    """The distance from 1 to the next number."""
    return 2.0**-7 if of == BFLOAT16 else float(np.finfo(of).eps)
