"""Networks of convolutions along one axis, of random layers, beside onnxruntime at several lengths."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.ops.library.host import is_onnx
from tests.support.onnx_models import model, run_onnxruntime

NETWORKS = 24
LENGTHS = (41, 64)


class Network:
    """An ONNX model that grows layer by layer from ``x: f32[N, channels, length]``."""

    def __init__(self, seed: int) -> None:
        self.random, self.numbers = Random(seed), np.random.default_rng(seed)
        self.channels = self.random.choice((3, 8, 16))
        self.is_open = self.random.random() < 0.3
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.last = "x"
        self.first = self.channels
        for _ in range(self.random.randint(2, 5)):
            self.random.choice((self.convolution, self.convolution, self.activation, self.padding, self.turned))()
        self.convolution()
        self.activation()

    def emit(self, kind: str, *inputs: str, **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [self.last, *inputs], [name], name=name, **attributes))
        self.last = name

    def constant(self, value: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def convolution(self) -> None:
        random, kernel, before = self.random, self.random.randint(1, 5), self.last
        group = self.channels if random.random() < 0.2 else 1
        results = self.channels if group > 1 or random.random() < 0.5 else random.choice((8, 16, 20))
        weights = self.constant(self.numbers.standard_normal((results, self.channels // group, kernel), np.float32) / 4)
        biases = [self.constant(self.numbers.standard_normal(results, np.float32))] if random.random() < 0.7 else []
        dilation = random.choice((1, 1, 2))
        span = dilation * (kernel - 1)
        is_plain = random.random() < 0.5
        strides, pads = ([1], [span // 2, span - span // 2]) if is_plain else ([random.choice((1, 2))], [1, 0])
        self.emit("Conv", weights, *biases, group=group, strides=strides, pads=pads, dilations=[dilation])
        if is_plain and results == self.channels and random.random() < 0.5:
            self.emit("Add", before)
        self.channels = results

    def activation(self) -> None:
        kind = self.random.choice(("Tanh", "Relu", "Mul", "Add"))
        shapes = ((self.channels, 1), (1, self.channels, 1), (1,))
        factor = [self.constant(self.numbers.standard_normal(self.random.choice(shapes), np.float32))]
        self.emit(kind, *(factor if kind in ("Mul", "Add") else []))

    def padding(self) -> None:
        ends = np.array([0, 0, self.random.randint(0, 3), 0, 0, self.random.randint(0, 2)])
        self.emit("Pad", self.constant(ends), self.constant(np.array(self.random.choice((0.0, 0.0, 1.5)), np.float32)))

    def turned(self) -> None:
        self.emit("Transpose", perm=[0, 2, 1])
        self.emit("Mul", self.constant(self.numbers.standard_normal(self.channels, np.float32)))
        self.emit("Transpose", perm=[0, 2, 1])

    def model(self) -> onnx.ModelProto:
        extents = ["N", self.first, "T"] if self.is_open else [2, self.first, LENGTHS[0]]
        given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, extents)
        result = helper.make_tensor_value_info(self.last, onnx.TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "lines", [given], [result], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_lines_are_onnxruntimes(seed: int) -> None:
    network = Network(seed)
    made = network.model()
    exe = gk.compile(import_onnx(made))
    for length in LENGTHS if network.is_open else LENGTHS[:1]:
        x = np.random.default_rng(seed).standard_normal((2, network.first, length), np.float32)
        (expected,) = run_onnxruntime(made, {"x": x})
        (found,) = exe(x)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_bytes_along_one_axis_are_multiplied_by_onnxruntime() -> None:
    def read(name: str, result: str) -> onnx.NodeProto:
        return helper.make_node("DequantizeLinear", [name, "scale", "zero"], [result], name=result)

    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        read("q", "a"),
        read("w", "b"),
        helper.make_node("Conv", ["a", "b"], ["c"], name="conv"),
        helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["d"]),
        read("d", "y"),
    ]
    x = np.random.default_rng(0).standard_normal((1, 8, 30), np.float32)
    weights = np.random.default_rng(1).integers(-20, 20, (4, 8, 3), np.int8)
    made = model(
        nodes, {"x": x}, constants={"w": weights, "scale": np.array(0.05, np.float32), "zero": np.array(0, np.int8)}
    )
    graph = import_onnx(made)
    assert [node.name for node in graph.operators if is_onnx(node, "Conv")] == ["conv"]
    np.testing.assert_array_equal(gk.compile(graph)(x)[0], run_onnxruntime(made, {"x": x})[0])
