"""What a region says of weights, and what it leaves to onnxruntime: no copy is made that onnxruntime does not make itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.ops import OPS
from graphkernel.ops.library.host import ONNX
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost
from graphkernel.runtime.plan.placement import placements
from graphkernel.runtime.plan.plan import make_plan
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import Attrs, TensorType, dtype
from tests.support.onnx_models import model, run_onnxruntime

X = np.linspace(-1, 1, 3 * 512, dtype=np.float32).reshape(3, 512)
W = np.linspace(1, 2, 512 * 20, dtype=np.float32)


def regions(graph: Graph) -> list[list[str]]:
    """The ONNX operators of each region."""
    steps = [step for step in make_plan(graph, {}, OnnxRuntimeHost()).steps if isinstance(step, RegionStep)]
    return [[node.op_type for node in ModelProto.FromString(s.session.model.content).graph.node] for s in steps]


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (lambda x: ops.matmul(x, W.reshape(20, 512), transpose_b=True), ["Gemm"]),
        (lambda x: ops.matmul(x, W.reshape(512, 20)), ["MatMul"]),
        (lambda x: ops.matmul(ops.transpose(x), np.ones((20, 3), np.float32), transpose_b=True), ["Transpose", "Gemm"]),
    ],
)
def test_a_turned_weight_is_no_copy(net: Any, expected: Sequence[str]) -> None:
    graph = gk.trace(net, X)
    assert regions(graph) == [expected]
    for got, want in zip(gk.compile(graph, 0)(X), gk.evaluate(graph, [X]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def filled(opset: int) -> ModelProto:
    """A product with a matrix that is one number everywhere, 2 MiB of it."""
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["w"], value=helper.make_tensor("v", 1, [1], [0.5])),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    return model(nodes, {"x": X}, constants={"shape": np.array([512, 1024])}, opset=opset)


@pytest.mark.parametrize("opset", [9, 17])
def test_a_large_weight_of_one_number_is_filled_by_who_keeps_it(opset: int) -> None:
    graph = import_onnx(filled(opset))
    assert sum(node.data.array.nbytes for node in graph.nodes if node.data and node.data.array is not None) < 1 << 10
    assert regions(graph) == [["Expand", "MatMul"]]
    for level in (0, 2):
        np.testing.assert_allclose(
            gk.compile(graph, level)(X)[0], run_onnxruntime(filled(opset), {"x": X})[0], rtol=1e-5, atol=1e-5
        )


def test_a_large_weight_of_one_number_is_filled_behind_what_need_not_wait_for_it() -> None:
    nodes = [
        helper.make_node("Hardmax", ["x"], ["p"]),
        helper.make_node("Tanh", ["p"], ["t"]),
        helper.make_node("ConstantOfShape", ["shape"], ["w"], value=helper.make_tensor("v", 1, [1], [0.5])),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    constants = {"shape": np.array([512, 1024])}
    graph = gk.optimize(import_onnx(model(nodes, {"x": X}, constants=constants)), 2)
    found = placements(graph, frozenset(), OnnxRuntimeHost(), {}, {})
    depths = {node.name: found[node].depth for node in graph.operators}
    assert depths == {"p": 0, "t": 1, "w": 1, "y": 2}


@pytest.mark.parametrize(("operator", "opset", "is_the_same"), [("ThresholdedRelu", 10, True), ("Relu", 9, False)])
def test_operators_that_did_not_change_since_stand_with_ours(operator: str, opset: int, is_the_same: bool) -> None:
    made = Builder()
    x = made.parameter("x", TensorType((3, 3), dtype("float32")))
    attrs = {"op_type": operator, "domain": "", "attributes": "[]", "result_types": ("f32[3, 3]",), "opset": opset}
    product = made.emit(OPS["MatMul"], made.node(ONNX, (x,), Attrs.of(**attrs)).out, x)
    found = regions(Graph("net", (x,), (product,)))
    assert found == ([[operator, "MatMul"]] if is_the_same else [[operator], ["MatMul"]])
