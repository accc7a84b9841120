"""Products are drawn into sums where that changes no result, and into reductions, which round less: products by powers of two
are exact."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.targets.cpu.runtime.llvm import detect_host

ROWS = 4099


def scaled_sum(factor: float, function: str) -> KernelDesc:
    """``y -+ x * factor`` of float32."""
    writer, x, y = Writer(), tensor("x", ROWS), tensor("y", ROWS)
    product = writer.op("Mul", x, constant(factor), shape=(ROWS,))
    return writer.desc("scaled", (x, y), writer.op(function, y, product, shape=(ROWS,)))


@pytest.mark.parametrize("function", ["Add", "Sub"])
@pytest.mark.parametrize("factor", [0.25, -0.5, 1.0, 0.3, 2.0])
def test_sums_of_products_are_those_of_numpy_to_the_last_bit(factor: float, function: str) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, ROWS)).astype(np.float32)
    product = x * np.float32(factor)
    (result,) = kernelgen.compile(scaled_sum(factor, function))(x, y)
    np.testing.assert_array_equal(result, y + product if function == "Add" else y - product)


@pytest.mark.parametrize(("factor", "is_exact"), [(0.25, True), (-0.5, True), (0.3, False), (2.0, False), (0.0, False)])
def test_products_that_round_or_overflow_are_left_alone(factor: float, is_exact: bool) -> None:
    assert ("fmul contract" in kernelgen.compile(scaled_sum(factor, "Add")).source) == is_exact


def test_a_reduction_rounds_its_products_with_its_sums() -> None:
    """``a * a`` is ``1 + 2**-11 + 2**-24``, which is no float: what is left of it when all but that was subtracted before."""
    count = 128  # more than there are sums side by side, so that most of them have terms of both halves
    a = np.float32(1 + 2**-12)
    x = np.repeat(np.array([1, a], np.float32), count)
    y = np.repeat(np.array([-(1 + 2**-11), a], np.float32), count)
    writer, left, right = Writer(), tensor("x", 2 * count), tensor("y", 2 * count)
    product = writer.op("Mul", left, right, shape=(2 * count,))
    total = writer.op("ReduceSum", product, shape=(1,), axis=(0,), keep_dims=True)
    (result,) = kernelgen.compile(writer.desc("dot", (left, right), total))(x, y)
    assert 0 <= result[0] <= count * 2**-24
    assert bool(result[0]) == detect_host().has_fma
