"""Equal numbers have themselves as their mean and no variance, although sums round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from kernelgen.tensor.types import parse_type

pytestmark = pytest.mark.usefixtures("shared_kernels")

CONSTANTS = [3.3, 1e20, -7.7e-20, 1 / 3, 65000.0, 0.0]
SHAPES = [(2, 768), (2, 1000), (2, 33), (2, 1), (2, 4097)]


def compiled(function: Any, operands: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    specs = [gk.spec(array.shape, array.dtype.name) for array in operands]
    return gk.compile(gk.trace(function, *specs), opt_level=2)(*operands)


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return ops.layer_norm(x, gamma, beta, epsilon=1e-5)


def layer_norm_v3(x: Any, gamma: Any, beta: Any) -> Any:
    return ops.layer_norm_v3(x, gamma, beta, epsilon=1e-5)


def add_layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return ops.add_layer_norm(x, x, gamma, beta, epsilon=1e-5)


def batch_norm(x: Any, scale: Any, bias: Any) -> Any:
    images = ops.reshape(ops.transpose(x, (1, 0)), (*x.shape[::-1], 1, 1))
    return ops.batch_norm(images, scale, bias, bias, scale, is_training=True)


@pytest.mark.parametrize("norm", [layer_norm, layer_norm_v3, add_layer_norm])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows(norm: Any, shape: tuple[int, int]) -> None:
    check_rows(norm, shape, "float32")


@pytest.mark.parametrize("kind", ["float64", "float16", "bfloat16"])
def test_other_data_types(kind: str) -> None:
    check_rows(layer_norm, (2, 1000), kind)


def check_rows(norm: Any, shape: tuple[int, int], kind: str) -> None:
    type_ = parse_type(f"{kind}[1]").dtype.numpy
    ones, zeros = np.ones(shape[1], type_), np.zeros(shape[1], type_)
    for constant in CONSTANTS:
        x = np.full(shape, 0 if kind == "float16" and constant > 1e5 else constant).astype(type_)
        for results in (compiled(norm, (x, ones, zeros)), norm(x, ones, zeros)):
            assert not results[0].astype(np.float32).any()
            expected = x[:, :1] + x[:, :1] if norm is add_layer_norm else x[:, :1]
            np.testing.assert_array_equal(results[1].astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_channels(shape: tuple[int, int]) -> None:
    """Channels of one batch have equal numbers, in training."""
    ones, zeros = np.ones(shape[0], np.float32), np.zeros(shape[0], np.float32)
    for constant in CONSTANTS:
        x = np.full(shape, constant, np.float32)
        for results in (compiled(batch_norm, (x, ones, zeros)), batch_norm(x, ones, zeros)):
            assert not results[0].any()
            np.testing.assert_array_equal(results[3], x[:, 0])


def test_variance_of_equal_numbers_is_none() -> None:
    """Below the square of a unit in the last place of the numbers."""
    for constant in CONSTANTS:
        x = np.full((2, 1000), constant, np.float32)
        for results in (compiled(layer_norm, (x, x[0], x[0])), layer_norm(x, x[0], x[0])):
            assert (results[2] <= np.spacing(abs(x[:, :1])).astype(np.float64) ** 2 / 1000).all()


@pytest.mark.parametrize("mean", [0.0, 10.0, 10_000.0, 1e7])
def test_rows_far_from_zero(mean: float) -> None:
    """The error is that of rounding the mean."""
    x = np.random.default_rng(0).normal(mean, 1, (64, 768)).astype(np.float32)
    ones, zeros = np.ones(768, np.float32), np.zeros(768, np.float32)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    found = compiled(layer_norm, (x, ones, zeros))[0]
    assert abs(found - exact).max() <= 1.1 * np.spacing(np.float32(mean)) / 2 + 2e-6  # over the least deviation


def test_softmax_of_equal_numbers() -> None:
    for constant in CONSTANTS:
        x = np.full((2, 1000), constant, np.float32)
        np.testing.assert_array_equal(compiled(lambda a: ops.softmax(a), (x,))[0], np.full_like(x, 1e-3))


def test_the_mean_of_a_sum_is_not_enough() -> None:
    x = np.full((2, 1000), 3.3, np.float32)
    assert (compiled(lambda a: a - ops.reduce_mean(a, -1, keep_dims=True), (x,))[0] != 0).any()
