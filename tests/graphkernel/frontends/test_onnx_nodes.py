"""Nodes in any order, results that nobody reads, dead nodes and functions of the model: what counts is what outputs need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, helper

from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.importer import import_onnx
from kernelgen.system.limits import LIMITS
from kernelgen.tensor.evaluation.evaluate import evaluate
from tests.support.onnx_models import model, run_onnxruntime

node = helper.make_node
X = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)
HERE = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def operators(made: ModelProto) -> list[str]:
    return [found.op.name for found in import_onnx(made).operators]


def agrees(made: ModelProto) -> None:
    for got, wanted in zip(evaluate(import_onnx(made), [X]), run_onnxruntime(made, {"x": X}), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_nodes_may_stand_in_any_order() -> None:
    made = model([node("Neg", ["b"], ["y"]), node("Exp", ["a"], ["b"]), node("Relu", ["x"], ["a"])], {"x": X})
    assert operators(made) == ["ReLU", "Exp", "Neg"]
    agrees(made)


def test_nodes_that_wait_for_each_other_are_refused() -> None:
    nodes = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"], name="culprit"), node("Neg", ["b"], ["y"])]
    with pytest.raises(FrontendError, match=r"node \d (Relu culprit|Add -> a): its operands need its own result"):
        import_onnx(model(nodes, {"x": X}))


def test_dead_nodes_are_gone_whatever_they_are() -> None:
    dead = [node("NonZero", ["x"], ["n"]), node("Unique", ["x"], ["u"]), node("Relu", ["u"], ["r"])]
    assert operators(model([*dead, node("Neg", ["x"], ["y"])], {"x": X})) == ["Neg"]


@pytest.mark.parametrize(("made", "expected"), [
    (node("Dropout", ["x"], ["y", "mask"]), []),
    (node("MaxPool", ["x"], ["y", "indices"], kernel_shape=[2, 2]), ["MaxPool"]),
    (node("BatchNormalization", ["x", "k", "k", "k", "k"], ["y", "mean", "var"], training_mode=0), ["BatchNorm"]),
    (node("LayerNormalization", ["x", "k"], ["y", "mean", "var"]), ["LayerNorm"]),
], ids=lambda made: made.op_type if isinstance(made, NodeProto) else "")  # fmt: skip
def test_results_that_nobody_reads_are_left_out(made: NodeProto, expected: list[str]) -> None:
    x = np.ones((1, 4, 4, 4), np.float32)
    for opset in (9, 17) if made.op_type in ("Dropout", "MaxPool") else (17,):
        found = operators(model([made], {"x": x}, constants={"k": np.ones(4, np.float32)}, opset=opset))
        assert found == expected or set(expected) <= set(found)
        assert "Onnx" not in found


def own(name: str, nodes: Sequence[NodeProto], opset: int = 17) -> FunctionProto:
    return helper.make_function("own", name, ["a"], ["b"], nodes, [helper.make_opsetid("", opset), HERE[1]])


def with_functions(nodes: Sequence[NodeProto], functions: Sequence[FunctionProto], **constants: Any) -> ModelProto:
    made = model(nodes, {"x": X}, constants=constants)
    made.functions.extend(functions)
    del made.opset_import[:]
    made.opset_import.extend(HERE)
    return made


def test_functions_of_the_model_are_written_out() -> None:
    inner = own("Inner", [node("Exp", ["a"], ["e"]), node("Neg", ["e"], ["b"])])
    outer = own("Outer", [node("Inner", ["a"], ["c"], domain="own"), node("Inner", ["c"], ["b"], domain="own")])
    made = with_functions(
        [node("Outer", ["x"], ["o"], domain="own"), node("Mul", ["o", "k"], ["y"])], [inner, outer], k=np.float32(2)
    )
    assert operators(made) == ["Exp", "Neg", "Exp", "Neg", "Mul"]
    agrees(made)


def test_a_call_of_a_function_leaves_its_attributes_at_their_defaults() -> None:
    half = helper.make_node("Constant", [], ["k"])
    half.attribute.append(AttributeProto(name="value_float", type=AttributeProto.FLOAT, ref_attr_name="alpha"))
    scaled = own("Scaled", [half, node("Mul", ["a", "k"], ["b"])])
    scaled.attribute_proto.append(helper.make_attribute("alpha", 0.5))
    outer = own("Outer", [node("Scaled", ["a"], ["b"], domain="own")])
    calls = [node("Outer", ["x"], ["o"], domain="own"), node("Scaled", ["o"], ["y"], domain="own", alpha=3.0)]
    made = with_functions(calls, [scaled, outer])
    np.testing.assert_array_equal(evaluate(import_onnx(made), [X])[0], X * 1.5)
    agrees(made)


def test_a_function_of_an_older_opset_means_what_it_meant() -> None:
    made = with_functions(
        [node("Old", ["x"], ["y"], domain="own")], [own("Old", [node("ReduceSum", ["a"], ["b"], axes=[1])], opset=11)]
    )
    (got,) = evaluate(import_onnx(made), [X])
    np.testing.assert_allclose(got, X.sum(1, keepdims=True))


def twice(body: NodeProto, opset: int) -> ModelProto:
    """A function of one node in an older ``opset``, called on its own result, of which nobody has written down the type."""
    calls = [node("F", ["x"], ["m"], domain="own"), node("F", ["m"], ["y"], domain="own")]
    return with_functions(calls, [own("F", [body], opset)])


def test_functions_of_an_older_opset_are_written_out_where_their_operators_are_the_same() -> None:
    agrees(twice(node("Softplus", ["a"], ["b"]), 15))


def test_functions_that_cannot_be_written_out_are_refused() -> None:
    with pytest.raises(FrontendError, match="functions of the model cannot be written out at its opset"):
        import_onnx(twice(node("Softmax", ["a"], ["b"], axis=1), 12))


def test_functions_that_would_never_end_are_refused() -> None:
    twice = [own(f"F{k}", [node(f"F{k + 1}", ["a"], ["c"], domain="own"), node(f"F{k + 1}", ["c"], ["b"], domain="own")])
             for k in range(LIMITS.nodes.bit_length() + 1)]  # fmt: skip
    last = own(f"F{len(twice)}", [node("Neg", ["a"], ["b"])])
    with pytest.raises(FrontendError, match="with its functions written out"):
        import_onnx(with_functions([node("F0", ["x"], ["y"], domain="own")], [*twice, last]))
    again = own("Again", [node("Again", ["a"], ["b"], domain="own")])
    with pytest.raises(FrontendError, match="the function Again of the model calls itself"):
        import_onnx(with_functions([node("Again", ["x"], ["y"], domain="own")], [again]))
