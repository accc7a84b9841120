"""Functions in the simulator of Ascend keep their digits at every magnitude, near 0 too."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.enclosure import agree, enclose

SIZE = 1000
"""No multiple of the lanes of a repeat."""


def magnitudes(name: str) -> np.ndarray:
    """Numbers of both signs over twenty powers of two, where the function is defined."""
    random = np.random.default_rng(0)
    numbers = np.where(random.random(SIZE) < 0.5, 1, -1) * np.exp2(random.uniform(-16, 4, SIZE))
    return (np.abs(numbers) if name in ("Log", "Sqrt", "Rsqrt") else numbers).astype(np.float32)


def every_magnitude() -> np.ndarray:
    """Both signs, all exponents alike, and what is special: zeros, infinities, NaN, the least and the largest number."""
    random = np.random.default_rng(1)
    bits = random.integers(0, 1 << 32, 4 * SIZE, dtype=np.uint32)
    near = random.uniform(-1.5, 1.5, 2 * SIZE).astype(np.float32)
    even = random.uniform(-100, 100, 2 * SIZE).astype(np.float32)
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38], np.float32)
    numbers = np.concatenate([bits.view(np.float32), near, even, special])
    return np.where(np.isnan(numbers), np.float32(np.nan), numbers)  # no signals


@pytest.mark.parametrize("name", ["Exp", "Log", "Tanh", "Erf", "Cosh", "Sqrt", "Rsqrt", "Reciprocal", "FastGeLU"])
def test_functions_lie_in_their_ranges(name: str) -> None:
    w, x = Writer(), tensor("x", SIZE)
    desc = w.desc(name.lower(), (x,), w.op(name, x, shape=(SIZE,)))
    values = magnitudes(name)
    (found,) = kernelgen.compile(desc, target="ascend")(values.copy())
    assert not agree([name], [found], enclose(desc, [values])).fault


@pytest.mark.parametrize(
    "name",
    ["Expm1", "Log1p", "Tanh", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Erf", "Erfc", "Atan", "Asin", "ACos", "Sin",
     "Cos", "Tan"],
)  # fmt: skip
def test_formulas_keep_their_digits_everywhere(name: str) -> None:
    values = every_magnitude()
    w, x = Writer(), tensor("x", values.size)
    desc = w.desc(name.lower(), (x,), w.op(name, x, shape=(values.size,)))
    (found,) = kernelgen.compile(desc, target="ascend")(values.copy())
    assert not agree([name], [found], enclose(desc, [values])).fault


@pytest.mark.parametrize("name", ["Atan2", "Pow"])
def test_functions_of_two_numbers_keep_their_digits_everywhere(name: str) -> None:
    first = every_magnitude()
    random = np.random.default_rng(2)
    near = np.clip(first, -1e37, 1e37) * random.uniform(0.25, 4, first.size)
    second = np.where(random.random(first.size) < 0.5, near, random.permutation(first)).astype(np.float32)
    w, x, y = Writer(), tensor("x", first.size), tensor("y", first.size)
    desc = w.desc(name.lower(), (x, y), w.op(name, x, y, shape=(first.size,)))
    (found,) = kernelgen.compile(desc, target="ascend")(first.copy(), second.copy())
    assert not agree([name], [found], enclose(desc, [first, second])).fault
