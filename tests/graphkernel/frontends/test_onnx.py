from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import graphkernel as gk
from graphkernel.errors import FrontendError, RuntimeFailure
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.frontends.onnx.rule_table import rules
from kernelgen.tensor.types import sym
from tests.graphkernel.frontends.test_onnx_contrib import CASES as JOINED
from tests.graphkernel.frontends.test_onnx_tabular import TABULAR
from tests.support.onnx_models import model, run_onnxruntime

Arrays = Mapping[str, Any]
A = np.array([[0.5, -1.5, 2.5, 0.25], [1.0, 3.5, -0.5, 0.75], [2.0, -2.5, 1.5, 4.0]], np.float32)
B = A[::-1].copy() + 0.5
UNIT = np.clip(A / 5, -0.9, 0.9)
INTS = np.array([[7, -7, 3], [-3, 8, 1]], np.int64)
IMAGE = np.random.default_rng(0).standard_normal((2, 4, 7, 6)).astype(np.float32)
ONE_OPERAND = [
    "Neg",
    "Abs",
    "Sign",
    "Floor",
    "Ceil",
    "Round",
    "Sqrt",
    "Reciprocal",
    "Exp",
    "Log",
    "Erf",
    "Sin",
    "Cos",
    "Tan",
    "Sinh",
    "Cosh",
    "Atan",
    "Asinh",
    "Identity",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Softsign",
    "HardSwish",
    "LeakyRelu",
    "Elu",
    "HardSigmoid",
    "IsNaN",
    "IsInf",
    "Dropout",
    "Shape",
    "Size",
    "Flatten",
    "Transpose",
    "Softmax",
    "LogSoftmax",
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
    "ReduceL1",
    "ReduceL2",
    "ArgMax",
    "Squeeze",
]
TWO_OPERANDS = [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Sum",
    "Max",
    "Min",
    "Mean",
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "PRelu",
]


def node(op_type: str, *inputs: str, outputs: tuple[str, ...] = ("y",), **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs, outputs, **attributes)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def assert_same(made: ModelProto, inputs: Mapping[str, np.ndarray], generic: tuple[str, ...] = ()) -> gk.Graph:
    """Imported, the model computes what onnxruntime computes, and only ``generic`` operators stay ONNX's."""
    graph = import_onnx(made)
    arrays = list(inputs.values())
    for got, wanted in zip(gk.evaluate(graph, arrays), run_onnxruntime(made, inputs), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6)
    assert tuple(found.attrs.str("op_type") for found in graph.operators if found.op.name == "Onnx") == generic
    return graph


@pytest.mark.parametrize("op_type", ONE_OPERAND)
def test_one_operand(op_type: str) -> None:
    x = np.abs(A) if op_type in ("Sqrt", "Log") else A
    assert_same(model([node(op_type, "x")], {"x": x}), {"x": x})


@pytest.mark.parametrize("op_type", ["Asin", "Acos", "Atanh", "Acosh"])
def test_one_operand_of_a_domain(op_type: str) -> None:
    x = np.abs(A) + 1 if op_type == "Acosh" else UNIT
    assert_same(model([node(op_type, "x")], {"x": x}), {"x": x})


@pytest.mark.parametrize("op_type", TWO_OPERANDS)
def test_two_operands(op_type: str) -> None:
    inputs = {"x": np.abs(A) if op_type == "Pow" else A, "z": B[:1] if op_type not in ("Sum", "Mean") else B}
    assert_same(model([node(op_type, "x", "z")], inputs), inputs)


Case = tuple[list[NodeProto], Arrays, Arrays]
"""Nodes, inputs and constants."""

CASES: dict[str, Case] = {
    "integer division": ([node("Div", "x", "k")], {"x": INTS}, {"k": np.array(2)}),
    "modulo": ([node("Mod", "x", "k")], {"x": INTS}, {"k": np.array(3)}),
    "modulo of the dividend's sign": ([node("Mod", "x", "k", fmod=1)], {"x": A}, {"k": np.float32(1)}),
    "integer exponent": ([node("Pow", "x", "k")], {"x": A}, {"k": np.array(3)}),
    "clip": ([node("Clip", "x", "lo", "hi")], {"x": A}, {"lo": np.float32(-1), "hi": np.float32(1)}),
    "clip above": ([node("Clip", "x", "", "hi")], {"x": A}, {"hi": np.float32(1)}),
    "where": ([node("Less", "x", "k", outputs=("c",)), node("Where", "c", "x", "k")], {"x": A}, {"k": np.float32(1)}),
    "logic": (
        [node("Less", "x", "k", outputs=("a",)), node("Not", "a", outputs=("b",)), node("And", "a", "b", outputs=("c",)),
         node("Or", "b", "c", outputs=("d",)), node("Xor", "a", "d")],
        {"x": A}, {"k": np.float32(1)},
    ),
    "cast": ([node("Cast", "x", to=TensorProto.INT32)], {"x": A}, {}),
    "cast to boolean": ([node("Cast", "x", to=TensorProto.BOOL)], {"x": np.floor(A)}, {}),
    "cast like": ([node("CastLike", "x", "k")], {"x": A}, {"k": np.zeros(1, np.float64)}),
    "reshape with zero and minus one": ([node("Reshape", "x", "s")], {"x": IMAGE}, {"s": ints(0, -1, 3)}),
    "unsqueeze": ([node("Unsqueeze", "x", "s")], {"x": A}, {"s": ints(0, -1)}),
    "squeeze": ([node("Squeeze", "x", "s")], {"x": A[:1, None]}, {"s": ints(-2)}),
    "expand": ([node("Expand", "x", "s")], {"x": A[:1]}, {"s": ints(2, 3, 1)}),
    "tile": ([node("Tile", "x", "s")], {"x": A}, {"s": ints(2, 3)}),
    "concat": ([node("Concat", "x", "z", axis=-1)], {"x": A, "z": B}, {}),
    "concat of one": ([node("Concat", "x", axis=0, outputs=("c",)), node("Neg", "c")], {"x": A}, {}),
    "slice": (
        [node("Slice", "x", "b", "e", "a", "s")],
        {"x": IMAGE}, {"b": ints(-1, 1), "e": ints(-9, 2**40), "a": ints(2, -1), "s": ints(-2, 1)},
    ),
    "empty slice": ([node("Slice", "x", "b", "e")], {"x": A}, {"b": ints(2), "e": ints(1)}),
    "pad": ([node("Pad", "x", "p", "v")], {"x": A}, {"p": ints(0, 1, 2, 0), "v": np.float32(3)}),
    "softmax of an axis": ([node("Softmax", "x", axis=1)], {"x": IMAGE}, {}),
    "layer norm": (
        [node("LayerNormalization", "x", "g", "b", axis=-2)],
        {"x": IMAGE}, {"g": IMAGE[0, 0] + 2, "b": IMAGE[1, 1]},
    ),
    "layer norm without bias": ([node("LayerNormalization", "x", "g")], {"x": A}, {"g": A[0]}),
    "batch norm": ([node("BatchNormalization", "x", "s", "s", "s", "s", epsilon=1e-3)], {"x": IMAGE}, {"s": np.abs(A[0])}),
    "reduction over axes": ([node("ReduceMean", "x", axes=[1, -1], keepdims=0)], {"x": IMAGE}, {}),
    "sum over axes": ([node("ReduceSum", "x", "a", keepdims=0)], {"x": IMAGE}, {"a": ints(0, 2)}),
    "arg max": ([node("ArgMax", "x", axis=1, keepdims=0)], {"x": A}, {}),
    "matrix times vector": ([node("MatMul", "x", "v")], {"x": IMAGE, "v": np.ones(6, np.float32)}, {}),
    "vector times matrix": ([node("MatMul", "v", "x")], {"x": IMAGE, "v": np.ones(7, np.float32)}, {}),
    "scalar product": ([node("MatMul", "v", "v")], {"v": A[0]}, {}),
    "gemm": ([node("Gemm", "x", "z", "c", alpha=0.5, beta=2.0, transB=1)], {"x": A, "z": B}, {"c": np.ones(3, np.float32)}),
    "gemm transposed": ([node("Gemm", "x", "z", transA=1)], {"x": A, "z": B}, {}),
    "gather": ([node("Gather", "x", "i", axis=1)], {"x": A}, {"i": np.array([[3, -4], [0, 1]])}),
    "one hot": (
        [node("OneHot", "i", "d", "v", axis=0)],
        {"i": ints(0, -1, 2)}, {"d": ints(4), "v": np.array([1.0, 5.0], np.float32)},
    ),
    "convolution": (
        [node("Conv", "x", "w", "b", strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2], group=2)],
        {"x": IMAGE}, {"w": IMAGE[:, :2, :3, :2], "b": np.ones(2, np.float32)},
    ),
    "convolution padded alike": (
        [node("Conv", "x", "w", auto_pad="SAME_UPPER", strides=[2, 2])],
        {"x": IMAGE}, {"w": IMAGE[:, :, :3, :2]},
    ),
    "max pool": ([node("MaxPool", "x", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], ceil_mode=1)], {"x": IMAGE}, {}),
    "average pool": (
        [node("AveragePool", "x", kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1)],
        {"x": IMAGE}, {},
    ),
    "global pools": (
        [node("GlobalAveragePool", "x", outputs=("a",)), node("GlobalMaxPool", "x", outputs=("b",)), node("Add", "a", "b")],
        {"x": IMAGE}, {},
    ),
    "constant of shape": (
        [node("ConstantOfShape", "s", value=helper.make_tensor("v", TensorProto.FLOAT, [1], [2.0]), outputs=("c",)),
         node("Mul", "x", "c")],
        {"x": A}, {"s": ints(3, 4)},
    ),
    "running sum": ([node("CumSum", "x", "k", exclusive=1, reverse=1)], {"x": A}, {"k": np.array(-1)}),
    "elements": ([node("GatherElements", "x", "i", axis=-2)], {"x": A, "i": np.array([[2, -3, 0], [0, 1, -1]])}, {}),
    "range": (
        [node("Range", "a", "b", "c", outputs=("r",)), node("Add", "x", "r")],
        {"x": INTS}, {"a": np.array(1), "b": np.array(7), "c": np.array(2)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    nodes, inputs, constants = CASES[name]
    assert_same(model(nodes, inputs, constants=constants), inputs)


@pytest.mark.parametrize(("nodes", "opset", "constants"), [
    ([node("Softmax", "x")], 11, {}),
    ([node("Softmax", "x", axis=2)], 9, {}),
    ([node("Clip", "x", min=-1.0, max=0.5)], 9, {}),
    ([node("Squeeze", "x", axes=[0])], 11, {}),
    ([node("Unsqueeze", "x", axes=[0, 3])], 11, {}),
    ([node("Slice", "x", starts=[1, 0], ends=[9, -1], axes=[2, 3])], 9, {}),
    ([node("Split", "x", split=[1, 3], axis=1, outputs=("y", "z"))], 11, {}),
    ([node("Split", "x", num_outputs=3, axis=2, outputs=("y", "z", "v"))], 18, {}),
    ([node("Pad", "x", pads=[0, 0, 1, 0, 0, 0, 0, 2], value=1.0)], 9, {}),
    ([node("ReduceMean", "x", "a", keepdims=0)], 18, {"a": ints(1, 2)}),
    ([node("ReduceMax", "x", "a")], 20, {"a": ints(-1)}),
    ([node("Gelu", "x")], 20, {}),
    ([node("Gelu", "x", approximate="tanh")], 20, {}),
])  # fmt: skip
def test_every_opset_has_its_own_rules(nodes: list[NodeProto], opset: int, constants: Arrays) -> None:
    x = IMAGE[:1]
    assert_same(model(nodes, {"x": x}, tuple(nodes[0].output), constants, opset), {"x": x})


COLLECTIVES = {f"com.microsoft::{name}" for name in ("AllReduce", "AllGather", "AllToAll")} | {
    f"mindspore::{name}"
    for name in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AllToAll", "Send", "Receive")
}
"""Tested where there are several ranks: tests/graphkernel/frontends/test_onnx_collectives.py."""

ON_INTEGERS = {f"com.microsoft::QLinear{name}" for name in (
    "Add", "AveragePool", "Concat", "GlobalAveragePool", "LeakyRelu", "Mul", "Sigmoid", "Softmax",
)} | {"QLinearConv", "QLinearMatMul", "com.microsoft::QGemm"}  # fmt: skip
"""Tested beside onnxruntime: tests/graphkernel/frontends/test_onnx_quantized_operators.py."""

CACHED = {"com.microsoft::GroupQueryAttention"}
"""Tested beside onnxruntime: tests/graphkernel/frontends/test_onnx_group_query.py."""

ELSEWHERE = {"Einsum", "GatherND", "GridSample", "Resize"}
"""Tested beside numpy and onnxruntime: test_onnx_einsum.py, test_onnx_positions.py, test_onnx_grid_sample.py,
../passes/test_resized_rows.py."""


def test_every_rule_is_tested() -> None:
    tested = {
        *ONE_OPERAND,
        *TWO_OPERANDS,
        "Asin",
        "Acos",
        "Atanh",
        "Acosh",
        "Split",
        "Gelu",
        "Constant",
        "Swish",
        "LpPool",
        "RMSNormalization",
        *("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("DepthToSpace", "SpaceToDepth", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "ReduceLogSumExp"),
        *("GroupNormalization", "InstanceNormalization", "MeanVarianceNormalization", "ConvTranspose"),
    }
    tested |= {found.op_type for nodes, *_ in CASES.values() for found in nodes}
    tested |= {f"ai.onnx.ml::{name}" for name in TABULAR}
    tested |= COLLECTIVES | ON_INTEGERS | CACHED | ELSEWHERE | {case.operator for case in JOINED.values()}
    assert {name.removeprefix("com.microsoft::") for name in rules()} <= {
        name.removeprefix("com.microsoft::") for name in tested
    }


def test_shape_arithmetic_becomes_symbols() -> None:
    """Flatten the last two axes the way exporters write it."""
    nodes = [
        node("Shape", "x", outputs=("shape",)),
        node("Gather", "shape", "zero", outputs=("rows",)),
        node("Gather", "shape", "one", outputs=("n",)),
        node("Gather", "shape", "two", outputs=("m",)),
        node("Mul", "n", "m", outputs=("columns",)),
        node("Unsqueeze", "rows", "axis", outputs=("r",)),
        node("Unsqueeze", "columns", "axis", outputs=("c",)),
        node("Concat", "r", "c", axis=0, outputs=("target",)),
        node("Reshape", "x", "target"),
    ]
    constants = {"zero": np.array(0), "one": np.array(1), "two": np.array(2), "axis": ints(0)}
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    made = model(nodes, {"x": x}, constants=constants, shapes={"x": ("B", "S", 4)})
    graph = assert_same(made, {"x": x})
    assert graph.outputs[0].type.shape == (sym("B"), sym("S") * 4)
    assert [found.op.name for found in graph.operators] == ["Reshape"]


def test_expand_with_minus_ones_as_torch_writes_it() -> None:
    """Where(shape == -1, ones, shape) is the target of Expand."""
    nodes = [
        node("Shape", "x", outputs=("have",)),
        node("Shape", "asked", outputs=("rank",)),
        node("ConstantOfShape", "rank", value=helper.make_tensor("v", TensorProto.INT64, [1], [1]), outputs=("ones",)),
        node("Mul", "ones", "minus", outputs=("minuses",)),
        node("Equal", "asked", "minuses", outputs=("same",)),
        node("Where", "same", "ones", "asked", outputs=("target",)),
        node("Expand", "x", "target"),
    ]
    x = A[:, None]
    made = model(
        nodes, {"x": x}, constants={"asked": ints(2, -1, 5, -1), "minus": np.array(-1)}, shapes={"x": ("N", 1, 4)}
    )
    graph = assert_same(made, {"x": x})
    assert graph.outputs[0].type.shape == (2, sym("N"), 5, 4)


def test_rows_of_a_table_up_to_a_symbol_are_looked_up() -> None:
    """Nothing but the data says that the table has as many: what is beyond is an error."""
    nodes = [
        node("Shape", "x", outputs=("shape",)),
        node("Gather", "shape", "one", axis=0, outputs=("length",)),
        node("Slice", "table", "zero", "length", "zero", outputs=("places",)),
        node("Add", "x", "places"),
    ]
    constants = {"table": np.arange(40, dtype=np.float32).reshape(10, 4), "one": ints(1), "zero": ints(0)}
    x = np.ones((2, 3, 4), np.float32)
    made = model(nodes, {"x": x}, constants=constants, shapes={"x": ("B", "S", 4)})
    exe = gk.compile(assert_same(made, {"x": x}), opt_level=2)
    assert not exe.report.host
    np.testing.assert_array_equal(exe(x)[0], run_onnxruntime(made, {"x": x})[0])
    np.testing.assert_array_equal(exe(x[:, :2])[0], run_onnxruntime(made, {"x": x[:, :2]})[0])
    with pytest.raises(RuntimeFailure, match="idx=10"):
        exe(np.ones((2, 11, 4), np.float32))


def test_operators_without_a_rule_run_on_onnxruntime() -> None:
    nodes = [node("Hardmax", "x", axis=1, outputs=("c",)), node("Add", "c", "x")]
    graph = assert_same(model(nodes, {"x": A}, shapes={"x": ("N", 4)}), {"x": A}, generic=("Hardmax",))
    assert graph.operators[0].attrs.str("attributes")
    assert gk.parse(str(graph)) == graph
    np.testing.assert_allclose(gk.compile(graph, opt_level=2)(A)[0], gk.evaluate(graph, [A])[0], rtol=1e-6)


def test_optional_operands_stay_absent() -> None:
    nodes = [node("Resize", "x", "", "scales", mode="nearest")]
    made = model(nodes, {"x": IMAGE}, constants={"scales": np.array([1, 1, 2, 2], np.float32)})
    assert_same(made, {"x": IMAGE}, generic=("Resize",))


def test_several_results_of_a_generic_operator() -> None:
    nodes = [node("TopK", "x", "k", outputs=("y", "i"))]
    assert_same(model(nodes, {"x": A}, ("y", "i"), {"k": ints(2)}), {"x": A}, generic=("TopK",))


def test_a_skipped_result_is_no_operand() -> None:
    """The name of a result that nobody wants is empty, and so is that of an operand that is not given."""
    nodes = [
        node("Split", "x", outputs=("a", "", "c"), axis=1, num_outputs=3),
        node("Clip", "c", "", "high"),
    ]
    x = np.array([[-5, 1, 2, 3, -4, 5]], np.float32)
    graph = import_onnx(model(nodes, {"x": x}, constants={"high": np.array(3, np.float32)}, opset=18))
    for level in range(4):
        np.testing.assert_array_equal(gk.compile(graph, opt_level=level)(x)[0], [[-4, 3]])


LSTM = {"x": IMAGE[0], "w": IMAGE[:1, 0, :4, :], "r": IMAGE[:1, 0, :4, :1]}


@pytest.mark.parametrize(("made", "operands", "wanted"), [
    (node("LSTM", "x", "w", "r", outputs=("", "h"), hidden_size=1), LSTM, ("h",)),
    (node("LSTM", "x", "w", "r", outputs=("", "", "c"), hidden_size=1), LSTM, ("c",)),
    (node("LSTM", "x", "w", "r", outputs=("all", "", "c"), hidden_size=1), LSTM, ("all", "c")),
    (node("LayerNormalization", "x", "g", outputs=("y", "", "deviation")), {"x": A, "g": A[0]}, ("deviation", "y")),
    (node("Split", "x", "s", outputs=("", "b", ""), axis=1), {"x": A, "s": ints(1, 2, 1)}, ("b",)),
    (node("Split", "x", outputs=("a", ""), axis=1), {"x": A}, ("a",)),
    (node("BatchNormalization", "x", "v", "v", "v", "v", outputs=("y", "", "m"), training_mode=1),
     {"x": IMAGE, "v": np.abs(A[0])}, ("m", "y")),
])  # fmt: skip
def test_skipped_results_are_skipped_by_position(made: NodeProto, operands: Arrays, wanted: tuple[str, ...]) -> None:
    constants = {name: array for name, array in operands.items() if name in ("k", "s")}
    inputs = {name: array for name, array in operands.items() if name not in constants}
    skipping = model([made], inputs, wanted, constants)
    graph = import_onnx(skipping)
    assert gk.parse(str(graph)) == graph
    named = helper.make_node(made.op_type, made.input, [name or f"_{i}" for i, name in enumerate(made.output)])
    named.attribute.extend(made.attribute)
    expected = run_onnxruntime(model([named], inputs, wanted, constants), inputs)
    for got, right in zip(gk.evaluate(graph, list(inputs.values())), expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-5)


@pytest.mark.parametrize("number", ["FLOAT6E2M3", "FLOAT6E3M2"])
def test_a_data_type_that_is_not_ours_is_named_with_its_place(number: str) -> None:
    element = TensorProto.DataType.Value(number)
    info = helper.make_tensor_value_info("x", element, [2])
    out = helper.make_empty_tensor_value_info("y")
    taken = helper.make_model(helper.make_graph([node("Identity", "x")], "net", [info], [out]))
    with pytest.raises(FrontendError, match=f"input x: data type {number.lower()} is not supported"):
        import_onnx(taken)
    weights = TensorProto(name="x", data_type=element, dims=[0])
    held = helper.make_model(helper.make_graph([node("Identity", "x")], "net", [], [out], [weights]))
    with pytest.raises(FrontendError, match=f"initializer x: data type {number.lower()} is not supported"):
        import_onnx(held)
    made = model([node("Cast", "x", to=element)], {"x": A})
    with pytest.raises(FrontendError, match=r"node 0 Cast -> y.*data type"):
        import_onnx(made)


@pytest.mark.parametrize(("element", "shape", "message"), [
    (TensorProto.INT32, (3, 4), r"node 0 Relu -> y: result y is f32\[3, 4\], declared as i32"),
    (TensorProto.FLOAT, (3, 5), r"result y is f32\[3, 4\], declared as f32\[3, 5\]"),
    (TensorProto.FLOAT, (3,), r"result y is f32\[3, 4\], declared as f32\[3\]"),
    (TensorProto.FLOAT, ("N", None), ""),
    (TensorProto.FLOAT, None, ""),
])  # fmt: skip
@pytest.mark.parametrize("inside", [True, False])
def test_results_have_the_types_that_the_model_declares(
    element: int, shape: Any, message: str, inside: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another data type is refused, as by onnxruntime; another shape is told, and is what it is."""
    made = model([node("Relu", "x"), node("Neg", "y", outputs=("z",))], {"x": A}, ("z",) if inside else ("y",))
    (made.graph.value_info if inside else made.graph.output).append(helper.make_tensor_value_info("y", element, shape))
    if not inside:
        del made.graph.output[0]
    onnx.save(made, tmp_path / "declared.onnx")
    if element != TensorProto.FLOAT:
        with pytest.raises(FrontendError, match=rf"declared\.onnx: .*{message}"):
            gk.load(tmp_path / "declared.onnx")
        return
    with caplog.at_level("WARNING"):
        graph = gk.load(tmp_path / "declared.onnx")
    assert re.search(rf"declared\.onnx: .*{message}" if message else "^$", caplog.text)
    assert graph.outputs[0].type.shape == (3, 4)


def test_labels_are_the_nodes_names() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["m"], name="/layer.0/Mul"),
        helper.make_node("Add", ["m", "x"], ["y"]),
    ]
    graph = import_onnx(model(nodes, {"x": A}))
    assert [found.name for found in graph.operators] == ["/layer.0/Mul", "y"]
    assert [graph.origins[found.name].operator for found in graph.operators] == ["Mul", "Add"]


def test_what_becomes_of_a_node_takes_no_other_nodes_name() -> None:
    nodes = [
        helper.make_node("HardSwish", ["x"], ["h"], name="/act"),
        helper.make_node("Relu", ["h"], ["r"], name="/act_1"),
        helper.make_node("Relu", ["r"], ["y"], name="x"),
    ]
    graph = import_onnx(model(nodes, {"x": A}))
    assert graph.input_names == ("x",)
    origins = {name: (origin.operator, origin.node) for name, origin in graph.origins.items()}
    assert origins["/act_1"] == ("Relu", "/act_1")
    assert [found.name for found in graph.operators if graph.origins[found.name].node == "x"] == ["x_1"]
    assert {graph.origins[found.name].node for found in graph.operators} == {"/act", "/act_1", "x"}


def test_inputs_and_outputs_have_the_models_names_before_and_after_fusion_as_text_and_pickled() -> None:
    nodes = [node("Add", "gpu_0/data_0", "t", outputs=("gpu_0/softmax_1",)), node("Exp", "t", outputs=("c",))]
    made = model(nodes, {"gpu_0/data_0": A, "t": A}, ("gpu_0/softmax_1", "c"))
    graph = import_onnx(made)
    for found in (graph, gk.optimize(graph), gk.parse(str(graph)), pickle.loads(pickle.dumps(gk.optimize(graph)))):
        assert found.input_names == ("gpu_0/data_0", "t")
        assert found.output_names == ("gpu_0/softmax_1", "c")
    assert gk.parse(str(graph)) == graph


def test_outputs_may_be_inputs_or_constants() -> None:
    made = model([node("Identity", "x")], {"x": A}, ("y", "k"), {"k": ints(1, 2)})
    graph = import_onnx(made)
    assert graph.outputs[0].is_parameter
    assert graph.outputs[1].constant is not None


@pytest.mark.parametrize(("nodes", "shapes", "message"), [
    ([node("Add", "x", "nobody")], None, "node 0 Add -> y: operand nobody is made by no node"),
    ([node("Frobnicate", "x")], None, "node 0 Frobnicate -> y: not valid ONNX: No Op registered for Frobnicate"),
    ([node("Relu", "x", outputs=("z",))], None, "output y: no node makes it"),
])  # fmt: skip
def test_errors_name_the_node(nodes: list[NodeProto], shapes: Any, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        import_onnx(model(nodes, {"x": A}, shapes=shapes))


def test_extents_that_are_no_identifiers_become_symbols() -> None:
    made = model([node("Relu", "x")], {"x": IMAGE}, shapes={"x": ("batch size", "2*heads", "past + 1", "unk::3")})
    shape = import_onnx(made).inputs[0].type.shape
    assert shape == (sym("d_batch_size"), sym("heads") * 2, sym("past") + 1, sym("d_unk__3"))


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"\xff\xff\xff")
    with pytest.raises(FrontendError, match=r"broken.onnx: cannot be read as an ONNX model"):
        gk.load(tmp_path / "broken.onnx")
    onnx.save(model([node("Relu", "x")], {"x": A}), tmp_path / "good.onnx")
    assert [found.op.name for found in gk.load(tmp_path / "good.onnx").operators] == ["ReLU"]


@pytest.mark.parametrize("operator", ["LeakyRelu", "HardSigmoid", "Elu", "BatchNormalization", "LayerNormalization"])
def test_a_number_that_is_left_out_is_the_same_as_when_it_is_said(operator: str) -> None:
    schema = onnx.defs.get_schema(operator, 17)
    floats = {name: a.default_value for name, a in schema.attributes.items()}
    said: dict[str, Any] = {name: a.f for name, a in floats.items() if a.type == onnx.AttributeProto.FLOAT}
    row = np.full(4, 1e-6)
    operands = {
        "x": A.astype(np.float64),
        **{name: row * k for k, name in enumerate(("scale", "bias", "mean", "var"), 1)},
    }
    names = list(operands)[: schema.min_input]
    given = {name: operands[name] for name in names}
    results = []
    for attributes in ({}, said):
        graph = import_onnx(model([helper.make_node(operator, names, ["y"], **attributes)], given))
        results.append(gk.compile(graph, opt_level=0)(*given.values())[0])
    np.testing.assert_array_equal(*results)
