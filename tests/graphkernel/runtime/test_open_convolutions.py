"""Where convolutions of open images stay with onnxruntime, so do activations behind them, which it computes within them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx

IMAGE = np.random.default_rng(1).standard_normal((2, 3, 21, 30)).astype(np.float32)
ACTIVATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Relu": ("Relu", ()), "Clip": ("Clip", ("low", "high")), "Tanh": ("Tanh", ()),
}  # fmt: skip


def network(activation: str, *, is_read_twice: bool = False) -> onnx.ModelProto:
    """Two strided convolutions of an open image, each with an activation behind it."""
    draw = np.random.default_rng(0).standard_normal
    operator, bounds = ACTIVATIONS[activation]
    weights = {
        "w": draw((8, 3, 3, 3)),
        "b": draw(8),
        "v": draw((4, 8, 3, 3)),
        "low": np.zeros(()),
        "high": np.full((), 6),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node(operator, ["c", *bounds], ["d"]),
        helper.make_node("Conv", ["d", "v"], ["e"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node(operator, ["e", *bounds], ["y"]),
    ]
    results = ["y", "c"] if is_read_twice else ["y"]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w_"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results],
        [numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def compiled(model: onnx.ModelProto) -> gk.Executable:
    """The executable, whose results are onnxruntime's."""
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = gk.compile(import_onnx(model), flags="--disable_cluster_ops=Conv2D")
    for found, want in zip(exe(IMAGE), session.run(None, {"x": IMAGE}), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    return exe


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_behind_convolutions_of_open_images_are_theirs(activation: str) -> None:
    report = compiled(network(activation)).report
    assert (len(report.host), report.kernel_calls) == (1, 0)


def test_an_activation_is_a_kernel_where_the_convolution_is_read_elsewhere_too() -> None:
    assert compiled(network("Relu", is_read_twice=True)).report.kernel_calls == 1
