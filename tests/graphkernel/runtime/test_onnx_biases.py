"""A bias that is added to a convolution is written into it, where it is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import graphkernel as gk
from graphkernel import ops
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost
from graphkernel.runtime.plan.plan import make_plan

X = np.linspace(-1, 1, 2 * 3 * 5 * 5, dtype=np.float32).reshape(2, 3, 5, 5)
W = np.linspace(1, 2, 4 * 3 * 3 * 3, dtype=np.float32).reshape(4, 3, 3, 3)
PER_CHANNEL = np.arange(4, dtype=np.float32)[:, None, None]


def operators(of: Any) -> tuple[list[str], Any]:
    """The ONNX operators of the one region, and the results of the graph."""
    graph = gk.trace(of, X)
    (step,) = [each for each in make_plan(graph, {}, OnnxRuntimeHost()).steps if isinstance(each, RegionStep)]
    nodes = ModelProto.FromString(step.session.model.content).graph.node
    return [f"{node.op_type} {len(node.input)}" for node in nodes], gk.compile(graph, 0)(X)


@pytest.mark.parametrize("bias", [PER_CHANNEL, PER_CHANNEL[None]])
@pytest.mark.parametrize("swapped", [False, True])
def test_numbers_for_each_channel_are_a_bias(bias: np.ndarray, swapped: bool) -> None:
    found, (got,) = operators(lambda x: bias + ops.conv2d(x, W) if swapped else ops.conv2d(x, W) + bias)
    assert found == ["Conv 3"]
    (plain,) = operators(lambda x: ops.conv2d(x, W))[1]
    np.testing.assert_allclose(got, plain + bias, rtol=1e-5)


@pytest.mark.parametrize(
    "net",
    [
        lambda x: ops.conv2d(x, W) + PER_CHANNEL.reshape(4, 1, 1)[:1],
        lambda x: ops.conv2d(x, W) + np.arange(3, dtype=np.float32),
        lambda x: ops.conv2d(x, W) + np.arange(6, dtype=np.float32).reshape(2, 1, 3, 1)[..., :1, :],
        lambda x: (lambda y: (y, y + PER_CHANNEL))(ops.conv2d(x, W)),
        lambda x: (lambda y: (y + PER_CHANNEL) * y)(ops.conv2d(x, W)),
    ],
    ids=["one number", "along an axis", "for each picture", "a result", "read twice"],
)
def test_other_sums_stay_sums(net: Any) -> None:
    found, got = operators(net)
    assert {"Conv 2", "Add 2"} <= set(found)
    for result, expected in zip(got, gk.evaluate(gk.trace(net, X), [X]), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
