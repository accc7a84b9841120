"""Convolutions whose windows lie side by side are products; others stay convolutions."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel
from graphkernel import ops
from graphkernel.ops import Tensor
from graphkernel.ops.library.host import ONNX
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.nn import CONV2D

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((2, 3, 24, 16), np.float32)


def _traced(weights: np.ndarray, stride: tuple[int, int]) -> Graph:
    def network(x: Tensor) -> Tensor:
        return ops.relu(ops.conv2d(x, weights, stride=stride))

    return graphkernel.trace(network, IMAGE)


def _weights(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


@pytest.mark.parametrize("window", [(8, 8), (12, 4), (8, 16)])
def test_patches_are_rows_of_a_product(window: tuple[int, int]) -> None:
    weights = _weights(32, 3, *window)
    graph = _traced(weights, window)
    exe = graphkernel.compile(graph)
    assert exe.report.host == ()
    (expected,) = graphkernel.compile(graph, 0, host="numpy")(IMAGE)
    np.testing.assert_allclose(exe(IMAGE)[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "stride"),
    [((32, 3, 8, 8), (4, 4)), ((32, 3, 1, 1), (1, 1)), ((32, 3, 10, 8), (10, 8)), ((4, 3, 2, 2), (2, 2))],
)
def test_windows_that_overlap_or_leave_something_out_stay(shape: tuple[int, ...], stride: tuple[int, int]) -> None:
    left = graphkernel.optimize(_traced(_weights(*shape), stride), flags="--disable_pass=to_nhwc_format")
    assert any(node.op in (CONV2D, ONNX) for node in left.operators)
