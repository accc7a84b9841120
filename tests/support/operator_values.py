"""Arrays for operands: of like size, or with everything that floats can be."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from kernelgen.tensor.types import Category, DType, TensorType

Values = Callable[[TensorType, int], np.ndarray]  # of a static type, for the operand at that place


def positive(type_: TensorType, place: int) -> np.ndarray:
    """Positive and below 1, so that roots, logarithms and divisions are defined; integers from 1 on."""
    return _made(type_, place, lambda rng, shape: rng.uniform(0.1, 0.9, shape), (1, 5))


def mixed(type_: TensorType, place: int) -> np.ndarray:
    """Both signs, several exponents, zeros."""

    def floats(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        spread = rng.uniform(1, 2, shape) * 2.0 ** rng.integers(-4, 3, shape) * rng.choice([1, -1], shape)
        return np.where(rng.uniform(size=shape) < 0.1, rng.choice([0.0, -0.0], shape), spread)

    return _made(type_, place, floats, (-9, 10))


def hard(type_: TensorType, place: int) -> np.ndarray:
    """Infinities, NaN, the ends of the range, zeros of both signs, and plain numbers between them."""
    limits = ml_dtypes.finfo(type_.dtype.numpy if type_.dtype.is_float else np.float32)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        float(limits.max),
        float(limits.smallest_normal),
        0.5,
        -3.0,
    ]
    return _made(type_, place, lambda rng, shape: rng.choice(special, shape), (-9, 10))


def _made(
    type_: TensorType,
    place: int,
    floats: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray],
    integers: tuple[int, int],
) -> np.ndarray:
    rng = np.random.default_rng(place)
    shape = tuple(dim for dim in type_.shape if isinstance(dim, int))
    of = type_.dtype
    if of.category is Category.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if of.is_integer:
        low = 0 if of.category is Category.UINT else integers[0]
        return rng.integers(max(low, integers[0]), integers[1], shape).astype(of.numpy)
    if of.category is Category.COMPLEX:
        return _complex(floats(rng, shape), floats(rng, shape), of)
    with np.errstate(over="ignore"):
        return np.asarray(floats(rng, shape)).astype(of.numpy)


def _complex(real: np.ndarray, imaginary: np.ndarray, of: DType) -> np.ndarray:
    result = np.empty(np.shape(real), of.numpy)
    result.real, result.imag = real, imaginary
    return result
