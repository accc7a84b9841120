"""Arrays whose elements are not aligned: inputs are copied, what is written is refused; no code ever runs on them."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import ArgumentError

LARGE = 9 << 20
"""Elements whose output goes past the caches, with stores that fault where they are not aligned."""


def _doubled(extent: int) -> KernelDesc:
    w, x = Writer(), tensor("x", extent)
    return w.desc("doubled", (x,), w.op("Mul", x, constant(2.0), shape=(extent,)))


def _misaligned(extent: int, offset: int) -> np.ndarray:
    raw = np.zeros(4 * extent + 8, np.uint8)
    found = np.frombuffer(raw.data, np.float32, extent, offset)
    assert found.flags.c_contiguous
    assert not found.flags.aligned
    return found


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_a_misaligned_input_is_copied(offset: int) -> None:
    x = _misaligned(512, offset)
    x[:] = np.arange(512)
    np.testing.assert_array_equal(kernelgen.compile(_doubled(512))(x)[0], 2 * x)


@pytest.mark.parametrize("extent", [512, LARGE])
def test_a_misaligned_output_is_refused(extent: int) -> None:
    kernel = kernelgen.compile(_doubled(extent))
    x, out = np.ones(extent, np.float32), _misaligned(extent, 1)
    with pytest.raises(ArgumentError, match="aligned"):
        kernel(x, out=(out,))
    with pytest.raises(ArgumentError, match="aligned"):
        kernel.entry((x, out), ())
    assert not out.any()


def test_a_misaligned_array_that_is_updated_is_refused() -> None:
    w, state, x = Writer(), tensor("state", 64), tensor("x", 64)
    y = w.op("Assign", state, w.op("Neg", x, shape=(64,)), shape=(64,))
    kernel = kernelgen.compile(w.desc("update", (state, x), y))
    with pytest.raises(ArgumentError, match="state is updated in place: give a writeable, aligned"):
        kernel(_misaligned(64, 2), np.ones(64, np.float32))
