"""Pieces that are cut and joined are computed where they are read and written, but not between convolutions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel
from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph


def _turned(x: Tensor) -> Tensor:
    width = x.shape[-1]
    assert isinstance(width, int)
    return ops.concat((-x[..., width // 2 :], x[..., : width // 2]), -1)


def _rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + _turned(x) * sin


def _rotary_in_part(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Only the first elements are turned; the parts of the result are written in another order than they lie in."""
    turned, kept = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    return ops.concat((_rotary(turned, cos, sin), kept), -1) * 0.5


@pytest.mark.parametrize("width", [6, 16, 64])
@pytest.mark.parametrize("which", [_rotary, _rotary_in_part])
def test_halves_that_turn_against_each_other_are_one_kernel(which: Callable[..., Tensor], width: int) -> None:
    known = width if which is _rotary else width // 2
    shapes = ((3, 5, width), (5, known), (5, known))
    random = np.random.default_rng(0)
    x, cos, sin = (random.standard_normal(shape, np.float32) for shape in shapes)
    graph = graphkernel.trace(which, x, cos, sin)
    exe = graphkernel.compile(graph)
    assert exe.report.kernel_calls == 1
    assert not exe.report.host
    half = known // 2
    a, b = x[..., :half], x[..., half:known]
    turned = x[..., :known] * cos + np.concatenate((-b, a), -1) * sin
    expected = turned if which is _rotary else np.concatenate((turned, x[..., known:]), -1) * np.float32(0.5)
    np.testing.assert_allclose(exe(x, cos, sin)[0], expected, rtol=1e-6, atol=1e-6)


def _of_two_convolutions(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    ways = (ops.relu(ops.conv2d(x, first)), ops.conv2d(x, second))
    return ops.conv2d(ops.concat(ways, 1)[:, 1:], first)


def _operators_of_kernels(graph: Graph, flags: str = "") -> set[str]:
    fused = graphkernel.optimize(graph, flags=flags)
    return {inner.op.name for node in fused.operators if node.body is not None for inner in node.body.operators}


def test_pieces_between_convolutions_of_a_library_stay_with_them() -> None:
    x, first, second = (
        np.ones((1, 3, 8, 8), np.float32),
        np.ones((2, 3, 1, 1), np.float32),
        np.ones((2, 3, 1, 1), np.float32),
    )
    graph = graphkernel.trace(_of_two_convolutions, x, first, second)
    found = _operators_of_kernels(graph, "--disable_pass=to_nhwc_format")
    assert found.isdisjoint({"Concat", "StridedSlice"})
