"""What no kernel computes with is handed on: texts, lists of tensors, options, narrow numbers, tensors of any rank."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper
from typer.testing import CliRunner

import graphkernel as gk
from graphkernel.bisect import bisect
from graphkernel.cli import app
from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import InputError, RuntimeFailure, TypeRuleError
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.passes.base import Context, Pass, Place
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import parse_type
from kernelgen.tensor.verify import verify
from tests.onnx_node_tests.check import value_of

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", 4])
TEXTS = helper.make_tensor_type_proto(TensorProto.STRING, ["N"])
LIST = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
MAYBE = helper.make_optional_type_proto(FLOATS)
ANY_RANK = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
WORDS = np.array(["one", "", "drei ünf"], object)


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def made(nodes: Sequence[NodeProto], inputs: dict[str, TypeProto], outputs: str, **constants: Any) -> ModelProto:
    infos = [helper.make_value_info(name, of) for name, of in inputs.items()]
    known = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    graph = helper.make_graph(nodes, "net", infos, results, known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


CASES: dict[str, tuple[ModelProto, Sequence[dict[str, Any]]]] = {
    "texts in and out": (
        made([node("StringConcat", "s t", "y"), node("Shape", "y", "z")], {"s": TEXTS}, "y z s", t=WORDS),
        [{"s": WORDS}, {"s": WORDS[::-1].copy()}],
    ),
    "texts beside numbers in a kernel": (
        made([node("Equal", "s t", "m"), node("Cast", "m", "f", to=1), node("Exp", "x", "e"), node("Unsqueeze", "f one", "g"),
              node("Mul", "e g", "h"), node("Tanh", "h", "y")], {"s": TEXTS, "x": FLOATS}, "y", t=WORDS, one=[1]),
        [{"s": WORDS, "x": X}, {"s": np.array(["a", "", "b"], object), "x": X}],
    ),
    "a list in and out": (
        made([node("SequenceInsert", "l x", "y"), node("SequenceLength", "y", "n"), node("SequenceAt", "y zero", "z")],
             {"l": LIST, "x": FLOATS}, "y n z", zero=np.array(0)),
        [{"l": [X, X[:1]], "x": X}, {"l": [], "x": X}],
    ),
    "a list between kernels": (
        made([node("Exp", "x", "e"), node("SplitToSequence", "e", "l", axis=0), node("ConcatFromSequence", "l", "c", axis=0),
              node("Neg", "e", "y")], {"x": FLOATS}, "y c"),
        [{"x": X}, {"x": X[:1]}],
    ),
    "an option that is there or not": (
        made([node("OptionalHasElement", "o", "y")], {"o": MAYBE}, "y"), [{"o": X}, {"o": None}],
    ),
    "an option made and taken": (
        made([node("Optional", "x", "o"), node("OptionalGetElement", "o", "p"), node("Exp", "p", "y")], {"x": FLOATS}, "y"),
        [{"x": X}],
    ),
    "a tensor of any rank": (
        made([node("Relu", "a", "r"), node("Shape", "r", "s"), node("ReduceSum", "r", "y", keepdims=0)], {"a": ANY_RANK},
             "r s y"),
        [{"a": X}, {"a": X[0]}, {"a": X[None]}],
    ),
    "axes at run time": (
        made([node("Unsqueeze", "x a", "u"), node("Exp", "u", "y")],
             {"x": FLOATS, "a": helper.make_tensor_type_proto(TensorProto.INT64, ["K"])}, "y"),
        [{"x": X, "a": np.array([0])}, {"x": X, "a": np.array([1, 3])}],
    ),
    "narrow floats between kernels": (
        made([node("Exp", "x", "e"), node("Cast", "e", "f", to=TensorProto.FLOAT8E4M3FN), node("Cast", "f", "g", to=1),
              node("Tanh", "g", "y")], {"x": FLOATS}, "y"),
        [{"x": X}, {"x": X * np.float32(100)}],
    ),
    "numbers of four bits as weights": (
        made([node("DequantizeLinear", "w s", "d"), node("Mul", "d x", "m"), node("Exp", "m", "y")], {"x": FLOATS}, "y",
             w=np.array([[-8, 7, 0, 3]]).astype(ml_dtypes.int4), s=np.float32(0.1)),
        [{"x": X}],
    ),
}  # fmt: skip


def same(got: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        if isinstance(theirs, list):
            same(mine, theirs)
        elif theirs.dtype == object:
            assert mine.tolist() == theirs.tolist()
        else:
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_values_agree_with_onnxruntime(name: str) -> None:
    model, data = CASES[name]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    graph = import_onnx(model)
    verify(graph)
    for level, host in ((0, "numpy"), (0, "auto"), (2, "auto")):
        optimized = gk.optimize(graph, level)
        again = pickle.loads(pickle.dumps(optimized))
        assert again == optimized
        executable = gk.compile(graph, level, host=host)
        results = [(executable(**inputs), session.run(None, inputs), inputs) for inputs in data]
        for got, expected, inputs in results:
            same(got, expected)
            same(gk.evaluate(optimized, inputs), expected)


@pytest.mark.parametrize("name", CASES)
def test_graphs_are_texts_and_back(name: str) -> None:
    graph = import_onnx(CASES[name][0])
    weights = {node.data.digest: node.data.array for node in graph.nodes if node.data and node.data.array is not None}
    for level in range(4):
        optimized = gk.optimize(graph, level)
        assert gk.parse(str(optimized), weights) == optimized


def test_what_stands_beside_is_fused() -> None:
    executable = gk.compile(import_onnx(CASES["texts beside numbers in a kernel"][0]))
    assert executable.report.kernels


@pytest.mark.parametrize("name", ["Add", "Neg", "Shape", "Exp", "Equal", "TensorMove"])
def test_no_operator_of_ours_takes_them(name: str) -> None:
    (text,) = import_onnx(CASES["texts in and out"][0]).inputs
    with pytest.raises(TypeRuleError, match=r"takes and gives numbers|expects"):
        Builder().node(OPS[name], (text,) * (OPS[name].arity or 1))


@pytest.mark.parametrize("text", [
    "string[N, 2]", "seq(tensor(float))[]", "optional(seq(tensor(int64)))[]", "map(int64,tensor(float))[]", "int4[8]",
    "float8_e4m3fn[2, N]", "tensor(string)[]",
])  # fmt: skip
def test_types_are_texts_and_back(text: str) -> None:
    of = parse_type(text)
    assert str(of) == text
    assert of.dtype.is_opaque
    assert pickle.loads(pickle.dumps(of)) == of


@pytest.mark.parametrize("text", ["seq(tensor(float))[2]", "list(tensor(float))[]", "seq[]", "int5[2]", "seq((((([]"])
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a tensor type|no dims|unknown data type"):
        parse_type(text)


def test_texts_may_be_lists_or_arrays_of_texts() -> None:
    executable = gk.compile(import_onnx(CASES["texts in and out"][0]))
    for given in (WORDS, WORDS.tolist(), WORDS.astype(str)):
        assert executable(given)[0].tolist() == [word + word for word in WORDS]
    with pytest.raises(InputError, match=r"input s is string, got an array of float32|input s is string\[N\]"):
        executable(X)


def test_values_of_the_node_tests_are_read() -> None:
    assert value_of(None) is None
    assert value_of([X]) == [X]


@pytest.mark.parametrize("name", CASES)
def test_packages_hold_them(name: str, tmp_path: Path) -> None:
    model, (inputs, *_) = CASES[name]
    executable = gk.compile(import_onnx(model))
    executable.save(tmp_path / "model.gkx")
    same(gk.load_compiled(tmp_path / "model.gkx")(**inputs), executable(**inputs))


# ---------------------------------------------------------------- check and bisect


def lost(graph: Graph, context: Context) -> Graph:
    """A pass that gives some output, of the same type, in place of another."""
    first, second, *rest = graph.outputs
    return graph.with_outputs((first, first if first.type == second.type else second, *rest))


TWO_TEXTS = made([node("StringConcat", "s s", "y"), node("StringConcat", "y s", "z")], {"s": TEXTS}, "y z")
TWO_LISTS = made([node("Neg", "x", "n"), node("SplitToSequence", "n", "y", axis=0), node("SplitToSequence", "x", "z", axis=0)],
                 {"x": FLOATS}, "y z")  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bisect_takes_values_of_every_kind(name: str) -> None:
    model, (data, *_) = CASES[name]
    graph = import_onnx(model)
    assert bisect(graph, [data[each] for each in graph.input_names], Options()) is None


@pytest.mark.parametrize(("model", "value"), [(TWO_TEXTS, WORDS), (TWO_LISTS, X)])
def test_a_pass_that_loses_texts_or_lists_is_named(model: ModelProto, value: Any) -> None:
    wrong = Pass("wrong", lost, place=Place("split.graph_kernel_splitter"))
    known = builtin_catalogue()
    found = bisect(import_onnx(model), [value], Options(), replace(known, passes=(*known.passes, wrong)))
    assert found is not None
    assert found.flags == "--disable_pass=split.wrong"


@pytest.mark.parametrize("command", ["check", "run", "bisect"])
@pytest.mark.parametrize("model", [TWO_TEXTS, TWO_LISTS])
def test_commands_compare_texts_and_lists(command: str, model: ModelProto, tmp_path: Path) -> None:
    onnx.save(model, path := tmp_path / "m.onnx")
    found = CliRunner().invoke(app, [command, str(path)])
    assert found.exit_code == 0, found.output


def test_an_operator_that_fails_on_the_inputs_is_named_without_a_traceback(tmp_path: Path) -> None:
    model, _ = CASES["axes at run time"]
    with pytest.raises(RuntimeFailure, match="Unsqueeze u fails: 'axes' has a duplicate axis"):
        gk.evaluate(import_onnx(model), [X, np.array([0, 0])])
