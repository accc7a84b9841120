"""Products are drawn into sums where that changes no result: products by powers of two are exact."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc

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
