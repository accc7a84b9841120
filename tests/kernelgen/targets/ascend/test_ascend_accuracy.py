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


@pytest.mark.parametrize("name", ["Exp", "Log", "Tanh", "Erf", "Cosh", "Sqrt", "Rsqrt", "Reciprocal", "FastGeLU"])
def test_functions_lie_in_their_ranges(name: str) -> None:
    w, x = Writer(), tensor("x", SIZE)
    desc = w.desc(name.lower(), (x,), w.op(name, x, shape=(SIZE,)))
    values = magnitudes(name)
    (found,) = kernelgen.compile(desc, target="ascend")(values.copy())
    assert not agree([name], [found], enclose(desc, [values])).fault
