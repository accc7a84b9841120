"""If, Loop and Scan: with bodies that take values from outside, in each other, and with conditions that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.importer import import_onnx
from kernelgen.tensor.verify import verify
from tests.support.onnx_models import model, run_onnxruntime

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
W = np.linspace(1, 2, 400, dtype=np.float32).reshape(4, 100)
YES, NO = np.array(True), np.array(False)


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def body(
    nodes: Sequence[NodeProto], inputs: Mapping[str, Any], outputs: Mapping[str, Any], **constants: Any
) -> GraphProto:
    def infos(of: Mapping[str, Any]) -> list[Any]:
        return [helper.make_tensor_value_info(name, *kind) for name, kind in of.items()]

    known = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    return helper.make_graph(nodes, "body", infos(inputs), infos(outputs), known)


FLOAT, COUNT, FLAG = (TensorProto.FLOAT, None), (TensorProto.INT64, []), (TensorProto.BOOL, [])
TWICE = body([node("Add", "x x", "r")], {}, {"r": FLOAT})
NEGATIVE = body([node("Neg", "x", "r")], {}, {"r": FLOAT})
PRODUCT = body([node("MatMul", "e w", "p"), node("Tanh", "p", "r")], {}, {"r": FLOAT}, w=W)
OTHER = body([node("MatMul", "e w", "p"), node("Neg", "p", "r")], {}, {"r": FLOAT}, w=W * 2)
NESTED = body([node("If", "d", "r", then_branch=TWICE, else_branch=body([node("Neg", "e", "r")], {}, {"r": FLOAT}))],
              {}, {"r": FLOAT})  # fmt: skip
STEP = body(
    [node("Add", "s e", "t"), node("Identity", "c", "k"), node("ReduceSum", "t axes", "q", keepdims=0)],
    {"i": COUNT, "c": FLAG, "s": FLOAT}, {"k": FLAG, "t": FLOAT, "q": FLOAT}, axes=np.array([1]),
)  # fmt: skip
SUM = body([node("Add", "s v", "t"), node("Mul", "t scale", "o")], {"s": FLOAT, "v": FLOAT}, {"t": FLOAT, "o": FLOAT})

MODELS: dict[str, tuple[Sequence[NodeProto], str, Sequence[dict[str, np.ndarray]]]] = {
    "two bodies with a weight of one name": (
        [node("Exp", "x", "e"), node("If", "c", "f", then_branch=PRODUCT, else_branch=OTHER), node("Relu", "f", "y")], "y",
        [{"x": X, "c": YES}, {"x": X, "c": NO}],
    ),
    "shapes that differ": (
        [node("Exp", "x", "e"), node("If", "c", "f", then_branch=PRODUCT, else_branch=TWICE), node("Exp", "f", "y")], "y",
        [{"x": X, "c": YES}, {"x": X, "c": NO}],
    ),
    "a body in a body": (
        [node("Exp", "x", "e"), node("If", "c", "y", then_branch=NESTED, else_branch=TWICE)], "y e",
        [{"x": X, "c": YES, "d": YES}, {"x": X, "c": YES, "d": NO}, {"x": X, "c": NO, "d": NO}],
    ),
    "a loop": (
        [node("Exp", "x", "e"), node("Loop", "n c x", "last sums", body=STEP), node("Exp", "last", "y"),
         node("Shape", "sums", "z")], "y sums z",
        [{"x": X, "n": np.array(3), "c": YES}, {"x": X, "n": np.array(0), "c": YES}, {"x": X, "n": np.array(9), "c": NO}],
    ),
    "a scan": (
        [node("ReduceSum", "x none", "b", keepdims=0), node("Exp", "x", "e"),
         node("Scan", "b e", "last all", body=SUM, num_scan_inputs=1), node("Tanh", "all", "y")], "last y",
        [{"x": X}, {"x": X[:1]}],
    ),
    "the same operator twice": (
        [node("Exp", "x", "e"), node("If", "c", "f", then_branch=PRODUCT, else_branch=OTHER),
         node("If", "d", "g", then_branch=OTHER, else_branch=PRODUCT), node("Sub", "f g", "y")], "y",
        [{"x": X, "c": YES, "d": YES}, {"x": X, "c": NO, "d": NO}],
    ),
}  # fmt: skip
CONSTANTS = {"scale": np.array(0.5, np.float32), "none": np.array([0])}


def made(name: str) -> ModelProto:
    nodes, outputs, (inputs, *_) = MODELS[name]
    used = {operand for each in nodes for operand in each.input} | ({"scale"} if name == "a scan" else set())
    shapes = {"x": ("N", 4)}
    return model(nodes, inputs, outputs.split(), {k: v for k, v in CONSTANTS.items() if k in used}, shapes=shapes)


def agree(got: Sequence[Any], expected: Sequence[Any]) -> None:
    for mine, theirs in zip(got, expected, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_onnxruntime(name: str, tmp_path: Path) -> None:
    of = made(name)
    graph = import_onnx(of)
    verify(graph)
    gk.save(graph, tmp_path / "model.gk")
    assert gk.load(tmp_path / "model.gk") == graph
    for level, host in ((0, "numpy"), (0, "auto"), (2, "auto"), (3, "auto")):
        executable = gk.compile(graph, level, host=host)
        results = [(executable(inputs), run_onnxruntime(of, inputs), inputs) for inputs in MODELS[name][2]]
        for got, expected, inputs in results:
            agree(got, expected)
            agree(gk.evaluate(gk.optimize(graph, level), inputs), expected)


def test_large_weights_of_bodies_are_constants_of_the_graph() -> None:
    graph = import_onnx(made("two bodies with a weight of one name"))
    held = [node.data.array for node in graph.nodes if node.data is not None and node.data.array is not None]
    assert sorted(array.shape for array in held if array.size > 1) == [W.shape, W.shape]
    assert len(str(graph)) < 8000


@pytest.mark.parametrize("condition", [True, False])
def test_a_condition_that_is_known_leaves_one_branch(condition: bool) -> None:
    nodes = [
        node("Exp", "x", "e"),
        node("If", "c", "f", then_branch=PRODUCT, else_branch=NESTED),
        node("Relu", "f", "y"),
    ]
    of = model(nodes, {"x": X}, ["y"], {"c": np.array(condition), "d": YES}, shapes={"x": ("N", 4)})
    graph = import_onnx(of)
    assert all(each.op.name != "Onnx" for each in graph.operators)
    agree(gk.compile(graph)(X), run_onnxruntime(of, {"x": X}))


def test_a_condition_on_a_rank_is_known() -> None:
    rank = [node("Shape", "x", "s"), node("Size", "s", "n"), node("Equal", "n two", "c")]
    of = model([*rank, node("If", "c", "y", then_branch=TWICE, else_branch=NEGATIVE)], {"x": X}, ["y"], {"two": np.array(2)},
               shapes={"x": ("N", 4)})  # fmt: skip
    graph = import_onnx(of)
    assert [each.op.name for each in graph.operators] == ["Add"]


def test_bodies_that_draw_numbers_draw_anew() -> None:
    drawn = body([node("RandomNormalLike", "x", "r")], {}, {"r": FLOAT})
    of = model([node("If", "c", "y", then_branch=drawn, else_branch=TWICE)], {"x": X, "c": YES})
    executable = gk.compile(import_onnx(of))
    assert not np.array_equal(executable(X, YES)[0], executable(X, YES)[0])


def test_bodies_too_deep_are_refused() -> None:
    inner = TWICE
    for _ in range(20):
        inner = body([node("If", "c", "r", then_branch=inner, else_branch=TWICE)], {}, {"r": FLOAT})
    of = model([node("If", "c", "y", then_branch=inner, else_branch=TWICE)], {"x": X, "c": YES})
    with pytest.raises(FrontendError, match="bodies are nested deeper than 16 levels"):
        import_onnx(of)


def test_what_exporters_note_in_bodies_is_left_out() -> None:
    plain, noted = made("shapes that differ"), made("shapes that differ")
    conditional = next(each for each in noted.graph.node if each.op_type == "If")
    for attribute in conditional.attribute:
        attribute.g.doc_string = "a note"
        for inner in attribute.g.node:
            inner.doc_string = "a note"
            inner.metadata_props.add(key="stack_trace", value="a long note")
    assert str(import_onnx(noted)) == str(import_onnx(plain))
