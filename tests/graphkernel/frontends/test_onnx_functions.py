"""Operators without a rule that ONNX writes out in simpler ones: fused where all of these have rules, else onnxruntime's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from kernelgen.tensor.graph import Graph
from tests.support.onnx_models import model, run_onnxruntime

Array = np.ndarray[Any, Any]
X = np.random.default_rng(1).standard_normal((2, 8, 4, 4)).astype(np.float32)

WRITTEN_OUT: list[tuple[str, int, Mapping[str, Any]]] = [
    ("Selu", 22, {}), ("Selu", 13, {"alpha": 2.0}), ("Selu", 6, {}), ("Celu", 12, {"alpha": 2.0}), ("Celu", 12, {}),
    ("Mish", 18, {}), ("ThresholdedRelu", 10, {}), ("ThresholdedRelu", 22, {"alpha": 0.5}), ("Shrink", 9, {"bias": 0.5}),
    ("Swish", 24, {"alpha": 2.0}), ("ReduceLogSum", 18, {}),
]  # fmt: skip


def single(op: str, opset: int, inputs: Mapping[str, Array], results: int = 1, **attributes: Any) -> ModelProto:
    names = [f"y{number}" for number in range(results)]
    return model([helper.make_node(op, [*inputs], names, name="mine", **attributes)], inputs, names, opset=opset)


def operators(graph: Graph) -> set[str]:
    return {node.op.name for node in graph.nodes}


@pytest.mark.parametrize(("op", "opset", "attributes"), WRITTEN_OUT)
@pytest.mark.parametrize("of", [np.float32, np.float16])
def test_written_out_operators_are_kernels_and_mean_what_onnxruntime_computes(
    op: str, opset: int, attributes: Mapping[str, Any], of: Any
) -> None:
    x = np.abs(X).astype(of) if op == "ReduceLogSum" else (3 * X).astype(of)
    made = single(op, opset, {"x": x}, **attributes)
    graph = import_onnx(made)
    assert "Onnx" not in operators(graph)
    assert {(origin.operator, origin.node) for origin in graph.origins.values()} == {(op, "mine")}
    (found,) = gk.compile(graph)(x)
    wide = single(op, opset, {"x": x.astype(np.float32)}, **attributes)
    (expected,) = run_onnxruntime(wide, {"x": x.astype(np.float32)})
    assert found.dtype == of
    unit = np.finfo(of).eps
    np.testing.assert_allclose(found, expected.astype(of), rtol=8 * unit, atol=8 * unit)


def test_a_body_that_needs_the_library_leaves_the_operator_as_it_was() -> None:
    made = single("DynamicQuantizeLinear", 13, {"x": X}, results=3)
    graph = import_onnx(made)
    hosts = [node for node in graph.nodes if node.op.name == "Onnx"]
    assert [(node.name, node.attrs["op_type"]) for node in hosts] == [("mine", "DynamicQuantizeLinear")]
    for found, expected in zip(gk.compile(graph)(X), run_onnxruntime(made, {"x": X}), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_whole_numbers_are_not_shrunk_by_attributes_made_whole() -> None:
    x = (10 * X).astype(np.int32)
    made = single("Shrink", 9, {"x": x}, lambd=0.3, bias=0.1)
    np.testing.assert_array_equal(gk.compile(import_onnx(made))(x)[0], run_onnxruntime(made, {"x": x})[0])


def test_products_stay_whole() -> None:
    """An attention that our rule declines is a function of products: onnxruntime has one kernel for it, and keeps it."""
    q = X.reshape(2, 8, 16)
    given = {"q": q, "k": q, "v": q}
    graph = import_onnx(single("Attention", 23, given, q_num_heads=4, kv_num_heads=4, softcap=2.0))
    assert [node.attrs["op_type"] for node in graph.nodes if node.op.name == "Onnx"] == ["Attention"]


# ---------------------------------------------------------------- bodies that lose bits: rules that do not


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_statistics_of_groups_survive_a_large_mean(opset: int, offset: float) -> None:
    x, channels = X + np.float32(offset), 2 if opset == 18 else 8
    scale, bias = np.linspace(0.5, 2, channels, dtype=np.float32), np.linspace(-1, 1, channels, dtype=np.float32)
    graph = import_onnx(single("GroupNormalization", opset, {"x": x, "s": scale, "b": bias}, num_groups=2))
    grouped = x.astype(np.float64).reshape(2, 2, -1)
    centered = grouped - grouped.mean(-1, keepdims=True)
    normal = (centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)).reshape(2, channels, -1)
    expected = (normal * scale[:, None] + bias[:, None]).reshape(x.shape)
    np.testing.assert_allclose(gk.compile(graph)(x, scale, bias)[0], expected, atol=1e-5 if not offset else 1e-3)
    assert "Onnx" not in operators(graph)


@pytest.mark.parametrize("of", [np.float32, np.float16])
def test_statistics_of_instances(of: Any) -> None:
    x, scale = X.astype(of), np.linspace(0.5, 2, 8).astype(of)
    graph = import_onnx(single("InstanceNormalization", 6, {"x": x, "s": scale, "b": -scale}, epsilon=0.01))
    wide = x.astype(np.float64)
    normal = (wide - wide.mean((2, 3), keepdims=True)) / np.sqrt(wide.var((2, 3), keepdims=True) + 0.01)
    expected = normal * scale[:, None, None] - scale[:, None, None]
    np.testing.assert_allclose(gk.compile(graph)(x, scale, -scale)[0], expected, atol=16 * np.finfo(of).eps)
    assert "Onnx" not in operators(graph)


@pytest.mark.parametrize(("attributes", "axes"), [({}, (0, 2, 3)), ({"axes": [1, 2]}, (1, 2))])
def test_mean_and_variance_survive_a_large_mean(attributes: Mapping[str, Any], axes: tuple[int, ...]) -> None:
    x = X + np.float32(1000)
    graph = import_onnx(single("MeanVarianceNormalization", 13, {"x": x}, **attributes))
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(axes, keepdims=True)) / (wide.std(axes, keepdims=True) + 1e-9)
    np.testing.assert_allclose(gk.compile(graph)(x)[0], expected, atol=1e-3)
    assert "Onnx" not in operators(graph)


@pytest.mark.parametrize("keep", [0, 1])
def test_the_logarithm_of_a_sum_does_not_overflow(keep: int) -> None:
    x = 400 * X
    x[0, 0] = -np.inf
    x[1, 1, 1, 1] = np.inf
    graph = import_onnx(single("ReduceLogSumExp", 13, {"x": x}, axes=[1, 3], keepdims=keep))
    expected = np.logaddexp.reduce(np.logaddexp.reduce(x.astype(np.float64), 3, keepdims=True), 1, keepdims=True)
    np.testing.assert_allclose(gk.compile(graph)(x)[0], expected if keep else expected[:, 0, :, 0], rtol=1e-6)
    assert "Onnx" not in operators(graph)


@pytest.mark.parametrize(("op", "attributes"), [
    ("DepthToSpace", {}), ("DepthToSpace", {"mode": "CRD"}), ("DepthToSpace", {"mode": "DCR"}), ("SpaceToDepth", {}),
])  # fmt: skip
def test_blocks_move_between_channels_and_space(op: str, attributes: Mapping[str, Any]) -> None:
    made = single(op, 11, {"x": X}, blocksize=2, **attributes)
    graph = import_onnx(made)
    np.testing.assert_array_equal(gk.compile(graph)(X)[0], run_onnxruntime(made, {"x": X})[0])
    assert "Onnx" not in operators(graph)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("op", "results"), [("NegativeLogLikelihoodLoss", 1), ("SoftmaxCrossEntropyLoss", 2)])
def test_losses_pick_the_numbers_of_classes(op: str, results: int, reduction: str, weighted: bool) -> None:
    labels = np.random.default_rng(2).integers(0, 8, (2, 4, 4))
    labels[0, 0] = 7
    inputs = {"x": X, "t": labels} | ({"w": np.linspace(0.5, 2, 8, dtype=np.float32)} if weighted else {})
    made = single(op, 13, inputs, results, reduction=reduction, ignore_index=7)
    graph = import_onnx(made)
    assert "Onnx" not in operators(graph)
    found, expected = gk.compile(graph)(*inputs.values()), run_onnxruntime(made, inputs)
    assert len(found) == results
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_statistics_of_layers_survive_a_large_mean() -> None:
    x, scale = (X + np.float32(1000)).astype(np.float32), np.ones(4, np.float32)
    graph = import_onnx(single("LayerNormalization", 17, {"x": x, "g": scale}, 3))
    assert "Onnx" not in operators(graph)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    _, mean, inverse = gk.compile(graph)(x, scale)
    np.testing.assert_allclose(gk.compile(graph)(x, scale)[0], normal, atol=1e-3)
    np.testing.assert_allclose(mean, wide.mean(-1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-5), rtol=1e-3)
