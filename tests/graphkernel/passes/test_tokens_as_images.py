"""Convolutions between layers of a transformer read its tokens as they lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor
from graphkernel.passes.format.tokens_as_images import tokens_as_images
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE

MOVES = frozenset({RESHAPE, TRANSPOSE})
RANDOM = np.random.default_rng(0)
COUNT, ROWS, COLUMNS, CHANNELS = 2, 16, 12, 64
TOKENS = RANDOM.standard_normal((COUNT, ROWS * COLUMNS, CHANNELS), np.float32)
PLANES = RANDOM.standard_normal((CHANNELS, 1, 3, 3), np.float32)
HALVES = RANDOM.standard_normal((CHANNELS, CHANNELS, 2, 2), np.float32) / 16


def _image(tokens: Tensor) -> Tensor:
    return ops.reshape(ops.transpose(tokens, (0, 2, 1)), (COUNT, CHANNELS, ROWS, COLUMNS))


def _tokens(image: Tensor) -> Tensor:
    count, channels, height, width = (int(str(dim)) for dim in image.shape)
    return ops.transpose(ops.reshape(image, (count, channels, height * width)), (0, 2, 1))


def _planes(tokens: Tensor) -> Tensor:
    """SegFormer's feed-forward layer, between its products."""
    return ops.gelu(_tokens(ops.conv2d(_image(ops.tanh(tokens)), PLANES, pad=1, group=CHANNELS)))


def _reduced(tokens: Tensor) -> Tensor:
    """PVT's sequence that keys and values are made of."""
    return ops.tanh(_tokens(ops.conv2d(_image(ops.tanh(tokens)), HALVES, stride=(2, 2))))


def _turned(graph: Graph) -> list[Node]:
    """What moves channels away from the end, in kernels too."""
    found = (inner for node in graph.operators for inner in (node.body.operators if node.body else (node,)))
    return [node for node in found if node.op is TRANSPOSE and node.out.type.shape[-1] != CHANNELS]


@pytest.mark.parametrize("network", [_planes, _reduced])
def test_nothing_is_transposed_around_a_convolution(network: Callable[[Tensor], Tensor]) -> None:
    graph = gk.trace(network, TOKENS)
    executable = gk.compile(graph)
    np.testing.assert_allclose(executable(TOKENS)[0], gk.evaluate(graph, [TOKENS])[0], rtol=1e-4, atol=1e-4)
    assert executable.report.host == ()
    assert not _turned(gk.optimize(graph, 2))
    assert _turned(gk.optimize(graph, 2, flags={"disable_pass": ["tokens_as_images"]}))


def test_what_has_another_number_of_channels_is_no_image_of_these_tokens() -> None:
    """Heads of an attention that are cut out of channels stand beside a convolution in many networks."""

    def network(tokens: Tensor) -> tuple[Tensor, Tensor]:
        heads = ops.reshape(ops.transpose(tokens, (0, 2, 1)), (COUNT, 4, CHANNELS // 4, ROWS * COLUMNS))
        return ops.reduce_sum(heads, (3,)), ops.conv2d(_image(tokens), PLANES, pad=1, group=CHANNELS)

    graph = gk.trace(network, TOKENS)
    for got, want in zip(gk.compile(graph)(TOKENS), gk.evaluate(graph, [TOKENS]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def _beside(network: Callable[[Tensor], Tensor]) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """A network beside a convolution of points that stands for itself."""

    def both(tokens: Tensor) -> tuple[Tensor, Tensor]:
        points = ops.reshape(tokens, (COUNT, ROWS * COLUMNS, 8, CHANNELS // 8))
        return network(tokens), ops.conv2d(points, np.ones((1, ROWS * COLUMNS, 1, 1), np.float32))

    return both


@pytest.mark.parametrize(
    "network",
    [
        lambda t: ops.reshape(ops.transpose(t, (1, 0, 2)), (ROWS * COLUMNS, COUNT, 8, 8)),
        lambda t: ops.transpose(ops.reshape(ops.reshape(t, (COUNT, 96, 8, 16)), (COUNT, 96, 128)), (1, 0, 2)),
        lambda t: ops.transpose(ops.reduce_max(ops.reshape(t, (COUNT, 96, 8, 16)), (3,)), (0, 2, 1)),
        lambda t: ops.transpose(ops.reshape(ops.reshape(t, (COUNT, 96, 8, 16)), (COUNT, 48, 256)), (0, 2, 1)),
        lambda t: ops.reshape(ops.transpose(t, (0, 2, 1)), (COUNT, CHANNELS, 4, 4, 12)),
        lambda t: ops.reshape(ops.transpose(t, (0, 2, 1)), (1, CHANNELS, 2 * ROWS, COLUMNS)),
    ],
    ids=[
        "images turned", "tokens turned", "a maximum of rows", "other channels", "images of three dims", "images in one",
    ],
)  # fmt: skip
def test_what_only_looks_like_images_stays(network: Callable[[Tensor], Tensor]) -> None:
    graph = gk.trace(_beside(network), TOKENS)
    assert tokens_as_images(graph) is graph


def test_a_graph_without_convolutions_stays() -> None:
    graph = gk.trace(lambda tokens: _tokens(ops.tanh(_image(tokens))), TOKENS)
    assert tokens_as_images(graph) is graph


def test_what_is_turned_keeps_its_label_and_all_labels_differ() -> None:
    graph = gk.trace(lambda tokens: (_planes(tokens), _reduced(tokens)), TOKENS)
    made = tokens_as_images(graph)
    assert len({node.name for node in made.nodes}) == len(made.nodes)
    ends = {node.name for node in graph.operators if node.op in MOVES and node.args[0].op in MOVES}
    assert len(ends) == 4
    assert ends <= {node.name for node in made.operators}
