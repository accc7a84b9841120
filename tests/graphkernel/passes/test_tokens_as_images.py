"""Convolutions between layers of a transformer read its tokens as they lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operators.shape import TRANSPOSE

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
