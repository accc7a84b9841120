"""What convolutions along one axis make is computed in their images, and margins of zeros are theirs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel
from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.operators.pieces import PAD
from kernelgen.tensor.operators.shape import TRANSPOSE

RANDOM = np.random.default_rng(0)
LINE = RANDOM.standard_normal((2, 16, 200), np.float32)
FIRST, SECOND = (RANDOM.standard_normal((16, 16, 1, 3), np.float32) for _ in range(2))
COLUMN = RANDOM.standard_normal((16, 1), np.float32)


def _along(x: Tensor, weights: np.ndarray, pad: tuple[int, int] = (1, 1)) -> Tensor:
    return ops.squeeze(ops.conv2d(ops.expand_dims(x, 2), weights, pad=(0, 0, *pad)), (2,))


def _chain(x: Tensor) -> Tensor:
    return _along(ops.tanh(_along(x, FIRST)) * COLUMN + x, SECOND)


def _joined(x: Tensor) -> Tensor:
    lines = _along(x, FIRST)
    return _along(ops.concat([ops.relu(lines), x], 2), SECOND)


def _causal(x: Tensor) -> Tensor:
    past = ((0, 0), (0, 0), (2, 0))
    return _along(ops.pad(ops.relu(_along(ops.pad(x, past), FIRST, (0, 0))), past), SECOND, (0, 0))


def _turned(x: Tensor) -> Tensor:
    return ops.transpose(_along(ops.transpose(x, (0, 2, 1)), FIRST), (0, 2, 1)) * 2.0


def _all(graph: Graph) -> list[Node]:
    """The operators of a graph and of its kernels."""
    return [inner for node in graph.operators for inner in (node.body.operators if node.body else (node,))]


def _checked(function: Callable[[Tensor], Tensor], given: np.ndarray) -> list[Node]:
    graph = graphkernel.trace(function, given)
    exe = graphkernel.compile(graph)
    (expected,) = graphkernel.compile(graph, 0, host="numpy")(given)
    np.testing.assert_allclose(exe(given)[0], expected, rtol=1e-4, atol=1e-4)
    assert exe.report.host == ()
    return _all(graphkernel.optimize(graph))


@pytest.mark.parametrize("function", [_chain, _joined, _causal])
def test_layouts_change_where_lines_come_in_and_go_out(function: Callable[[Tensor], Tensor]) -> None:
    found = _checked(function, LINE)
    assert sum(node.op is CONV2D for node in found) == 2
    assert sum(node.op is TRANSPOSE for node in found) == 2


def _greatest(x: Tensor) -> Tensor:
    return ops.reduce_max(_along(x, FIRST), axis=2)


def _scaled(x: Tensor) -> Tensor:
    lines = _along(x, FIRST)
    return _along(lines * ops.sigmoid(ops.reduce_mean(lines, axis=(2,), keep_dims=True)), SECOND)


def _sums_of_examples(x: Tensor) -> Tensor:
    return ops.reduce_sum(_along(x, FIRST), axis=(1, 2))


@pytest.mark.parametrize(("function", "moved"), [(_greatest, 1), (_scaled, 2), (_sums_of_examples, 1)])
def test_what_is_reduced_along_lines_is_not_moved_before(function: Callable[[Tensor], Tensor], moved: int) -> None:
    assert sum(node.op is TRANSPOSE for node in _checked(function, LINE)) == moved


def test_lines_with_channels_last_are_not_moved() -> None:
    found = _checked(_turned, np.ascontiguousarray(LINE.transpose(0, 2, 1)))
    assert [node.op for node in found if node.op in (CONV2D, TRANSPOSE)] == [CONV2D]


def test_margins_of_zeros_are_the_convolutions() -> None:
    assert not any(node.op in (PAD, PAD_AKG) for node in _checked(_causal, LINE))


@pytest.mark.parametrize(
    ("paddings", "value"),
    [(((0, 0), (0, 0), (1, 1)), 2.0), (((1, 0), (0, 0), (0, 0)), 0.0), (((0, 0), (0, 1), (1, 0)), 0.0)],
)
def test_other_margins_stay(paddings: tuple[tuple[int, int], ...], value: float) -> None:
    channels = 16 + sum(paddings[1])
    weights = RANDOM.standard_normal((16, channels, 1, 3), np.float32)

    def network(x: Tensor) -> Tensor:
        return _along(ops.pad(x, paddings, value=value), weights)

    graph = graphkernel.trace(network, LINE)
    (expected,) = graphkernel.compile(graph, 0, host="numpy")(LINE)
    np.testing.assert_allclose(graphkernel.compile(graph)(LINE)[0], expected, rtol=1e-4, atol=1e-4)
    assert any(node.op is PAD_AKG for node in _all(graphkernel.optimize(graph)))
