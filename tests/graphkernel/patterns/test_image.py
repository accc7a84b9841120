"""What joins convolutions of ours: which kernels a network gets, with the numbers that it had."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel
from graphkernel import ops
from graphkernel.cluster import convolution_cost
from graphkernel.cluster.convolution_cost import Windows
from graphkernel.ops import Tensor

SHAPE = (2, 16, 6, 10)


@pytest.fixture(autouse=True)
def fast_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of ours that cost nothing, and no convolution by tiles."""
    monkeypatch.setattr(convolution_cost, "OWN_SHARES", dict.fromkeys(Windows, 1e9))


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(0.3)


def point(x: Tensor, results: int, seed: int) -> Tensor:
    return ops.conv2d(x, drawn(seed, results, int(str(x.shape[1])), 1, 1)) + drawn(seed + 1, results, 1, 1)


def dense(x: Tensor, results: int, seed: int) -> Tensor:
    return ops.conv2d(x, drawn(seed, results, int(str(x.shape[1])), 3, 3), pad=(1, 1, 1, 1), stride=(1, 1))


def branches(x: Tensor) -> Tensor:
    """Two convolutions whose results stand side by side."""
    return ops.concat([ops.relu(point(x, 24, 1)), ops.relu(dense(x, 16, 3))], axis=1)


def shared(x: Tensor) -> Tensor:
    """The first part is read once more, so that it has a kernel of its own."""
    first = ops.relu(point(x, 16, 1))
    return dense(ops.concat([first, dense(x, 16, 3)], axis=1), 16, 5) + first


def excited(x: Tensor) -> Tensor:
    """Squeeze and excite: a scale of channels in front of a product."""
    y = ops.silu(dense(x, 16, 1))
    scale = ops.sigmoid(point(ops.reduce_mean(y, (2, 3), keep_dims=True), 16, 3))
    return point(y * scale, 40, 5)


@pytest.mark.parametrize(
    ("network", "together"),
    [
        (branches, [{"BatchMatMul", "Conv2D", "Concat"}]),
        (shared, [{"Concat", "Conv2D"}]),
        (excited, [{"Mul", "BatchMatMul"}, {"Conv2D", "Exp"}]),
    ],
)
def test_what_belongs_to_convolutions_is_in_their_kernels(
    network: Callable[[Tensor], Tensor], together: list[set[str]]
) -> None:
    graph = graphkernel.trace(network, graphkernel.spec(SHAPE, "float32"))
    optimized = graphkernel.optimize(graph)
    kernels = [
        {inner.op.name for inner in node.body.operators} for node in optimized.operators if node.body is not None
    ]
    for names in together:
        assert any(names <= kernel for kernel in kernels), kernels
    image = drawn(0, *SHAPE)
    np.testing.assert_allclose(
        graphkernel.compile(graph)(image), graphkernel.compile(graph, 0)(image), rtol=1e-4, atol=1e-5
    )


def test_channels_of_a_picture_are_read_where_they_lie() -> None:
    def network(x: Tensor) -> Tensor:
        return ops.relu(dense(x, 16, 1))

    graph = graphkernel.trace(network, graphkernel.spec((2, 3, 6, 10), "float32"))
    optimized = graphkernel.optimize(graph)
    assert (
        sum(node.body is not None for node in optimized.operators) == 2
    )  # one puts channels of the result first again
    image = drawn(0, 2, 3, 6, 10)
    np.testing.assert_allclose(
        graphkernel.compile(graph)(image), graphkernel.compile(graph, 0)(image), rtol=1e-4, atol=1e-5
    )
