"""Complex numbers: errors relative to the size of the result, and large numbers."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops

MEANINGS = {"cadd": np.add, "csub": np.subtract, "cmul": np.multiply, "creal_div": np.divide}


def numbers(seed: int) -> np.ndarray:
    """Of sizes from 1e-5 to 1e5."""
    random = np.random.default_rng(seed)
    parts = random.normal(size=(2, 1 << 14)) * 10.0 ** random.uniform(-5, 5, 1 << 14)
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


@pytest.mark.parametrize("name", MEANINGS)
def test_errors_relative_to_the_size(name: str) -> None:
    x, y = numbers(0), numbers(1)
    (found,) = gk.compile(gk.trace(getattr(ops, name), *[gk.spec(x.shape, "complex64")] * 2), opt_level=2)(x, y)
    exact = MEANINGS[name](x.astype(np.complex128), y.astype(np.complex128))
    assert (abs(found - exact) / abs(exact)).max() <= 3 * 2.0**-24


def test_absolute_values() -> None:
    x = numbers(0)
    (found,) = gk.compile(gk.trace(lambda a: ops.cabs(a), gk.spec(x.shape, "complex64")), opt_level=2)(x)
    exact = abs(x.astype(np.complex128))
    assert (abs(found - exact) / exact).max() <= 3 * 2.0**-24


def test_quotients_of_large_numbers() -> None:
    x = np.array([1e25 + 1e25j], np.complex64)
    (found,) = gk.compile(gk.trace(ops.creal_div, *[gk.spec(x.shape, "complex64")] * 2), opt_level=2)(x, x)
    assert found[0] == 1
