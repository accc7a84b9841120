"""What an array of drawn numbers gets on top: rows of equal numbers, extremes at the edges, special numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT64, DType

Array = np.ndarray[Any, Any]
Random = np.random.Generator


def structured(value: Array, random: Random) -> Array:
    """Some rows along one dim hold one number throughout, 0 where zeros may be; some have their extreme first or last."""
    dims = [d for d, extent in enumerate(value.shape) if extent > 1]
    if not dims or value.size == 0 or value.dtype.kind in "bc":
        return value
    for axis in random.permutation(dims)[:2]:  # what the last one arranges stays
        rows = np.moveaxis(value, axis, -1).copy()
        _equal_rows(rows, random)
        _extremes_at_edges(rows, random)
        value = np.moveaxis(rows, -1, axis)
    return _extreme_at_corner(np.ascontiguousarray(value), random)


def _equal_rows(rows: Array, random: Random) -> None:
    if rows.ndim > 1:
        equal = random.random(rows.shape[:-1]) < 0.08
        rows[equal] = rows[equal][..., :1]
        if rows.min() <= 0 <= rows.max():
            rows[random.random(rows.shape[:-1]) < 0.03] = 0


def _extremes_at_edges(rows: Array, random: Random) -> None:
    """Exchanges the largest or the smallest element of a third of the rows with the last, of others with the first."""
    for edge, find in ((-1, np.argmax), (-1, np.argmin), (0, np.argmax), (0, np.argmin)):
        chosen = random.random(rows.shape[:-1]) < 0.16
        some = rows[chosen]
        if some.size:
            place = find(some.astype(np.float64), -1)[..., None]
            extreme, last = np.take_along_axis(some, place, -1), some[..., edge].copy()
            some[..., edge] = extreme[..., 0]
            np.put_along_axis(some, place, np.where(place == edge % some.shape[-1], extreme, last[..., None]), -1)
            rows[chosen] = some


def _extreme_at_corner(value: Array, random: Random) -> Array:
    """The extreme of all elements is the last of them, or the first."""
    flat = value.reshape(-1)
    find, edge = (np.argmax, np.argmin)[random.integers(2)], (-1, -1, 0)[random.integers(3)]
    place = int(find(flat.astype(np.float64)))
    flat[place], flat[edge] = flat[edge], flat[place]
    return value


TINY = {FLOAT16: 2.0**-24, BFLOAT16: 2.0**-133, FLOAT64: 2.0**-1070}
LARGE = {FLOAT16: 6e4, FLOAT64: 1e308}


def with_special_numbers(value: Array, dtype: DType, random: Random, number: int = 0) -> Array:
    """Some floats are NaN, infinite, zeros of either sign, subnormal or close to overflow; few, so that sums of others stay
    numbers. Each of these where there is room for all; a small array has one of the first three, its ``number`` says which."""
    if not dtype.is_float or not value.size:
        return value
    tiny, large = TINY.get(dtype, 2.0**-140), LARGE.get(dtype, 3e38)
    first, others = [np.nan, np.inf, -np.inf], [0.0, -0.0, tiny, -3 * tiny, large, -large]
    if value.size < 18:
        numbers = [first[number % 3], others[number % 6]][: 1 if value.size < 4 else 2]
    else:
        numbers = np.resize(random.permutation(first + others), max(9, value.size // 500))
    flat = value.reshape(-1).copy()
    flat[random.permutation(value.size)[: len(numbers)]] = numbers
    return flat.reshape(value.shape)
