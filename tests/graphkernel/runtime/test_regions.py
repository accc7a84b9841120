from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.onnx_writing.table import WHOLE_MODELS_ONLY, WRITERS
from graphkernel.onnx_writing.writer import OLDEST_OPSET
from graphkernel.ops import OPS
from graphkernel.ops.library.host import ONNX
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost, RegionStep
from kernelgen.tensor.bind import concrete_shape
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import Attrs, TensorType, dtype, parse_type
from tests.support.operator_samples import cases
from tests.support.operator_values import mixed, positive
from tests.support.plan_runs import different

X = np.array([[0.5, -1.5, 2.5, 0.25], [1.0, 3.5, -0.5, 0.75], [2.0, -2.5, 1.5, 4.0]], np.float32)
IMAGE = np.random.default_rng(0).standard_normal((2, 4, 6, 5)).astype(np.float32)
SCALE = np.array([1.0, 2.0, 0.5, 1.5], np.float32)
INDICES = np.array([[2, 0], [1, 1]], np.int64)

CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "MatMul": (lambda x, y: ops.matmul(x, y, transpose_b=True), (X, X)),
    "BatchMatMul": (lambda x: ops.matmul(x, x, transpose_a=True), (IMAGE,)),
    "Transpose": (lambda x: ops.transpose(x, (2, 0, 3, 1)), (IMAGE,)),
    "Reshape": (lambda x: ops.reshape(x, (2, 6)), (X,)),
    "ExpandDims": (lambda x: ops.expand_dims(x, (0, 2)), (X,)),
    "Squeeze": (lambda x: ops.squeeze(ops.expand_dims(x, 1)), (X,)),
    "Flatten": (lambda x: ops.flatten(x, 2), (IMAGE,)),
    "Concat": (lambda x, y: ops.concat((x, y, x), axis=1), (X, X)),
    "Split": (lambda x: ops.split(x, (1, 3), axis=1), (X,)),
    "BroadcastTo": (lambda x: ops.broadcast_to(x, (2, 3, 4)), (X,)),
    "StridedSlice": (lambda x: ops.strided_slice(x, (2, 1), (-1, 4), (-1, 2)), (X,)),
    "Gather": (lambda x, i: ops.gather(x, i, axis=1), (X, INDICES)),
    "Cast": (lambda x: ops.cast(x, "int32"), (X,)),
    "Softmax": (lambda x: ops.softmax(x, axis=0), (X,)),
    "LogSoftmax": (lambda x: ops.log_softmax(x, axis=-1), (X,)),
    "LayerNorm": (lambda x, s: ops.layer_norm(x, s, s, epsilon=1e-5), (X, SCALE)),
    "BatchNorm": (lambda x, s: ops.batch_norm(x, s, s, s, s), (IMAGE, SCALE)),
    "Conv2DBackpropInput": (
        lambda dy, w: ops.conv2d_backprop_input(dy, w, input_size=IMAGE.shape, pad=1),
        (np.ones((IMAGE.shape[0], 6, *IMAGE.shape[2:]), np.float32), np.ones((6, IMAGE.shape[1], 3, 3), np.float32)),
    ),
    "Conv2DBackpropFilter": (
        lambda dy, x: ops.conv2d_backprop_filter(dy, x, filter_size=(6, IMAGE.shape[1], 3, 3), pad=1),
        (np.ones((IMAGE.shape[0], 6, *IMAGE.shape[2:]), np.float32), IMAGE),
    ),
    "Conv2D": (lambda x, w: ops.conv2d(x, w, 2, (1, 0, 1, 2), group=2), (IMAGE, np.ones((6, 2, 3, 2), np.float32))),
    "MaxPool": (lambda x: ops.max_pool(x, 3, 2, (1, 1, 1, 0), ceil_mode=True), (IMAGE,)),
    "AvgPool": (lambda x: ops.avg_pool(x, 3, 2, 1, count_include_pad=True), (IMAGE,)),
    "BiasAdd": (lambda x, s: ops.bias_add(x, s), (IMAGE, SCALE)),
    "Pad": (lambda x: ops.apply(OPS["Pad"], x, paddings=(1, 0, 2, 3), value=0.5), (X,)),
    "PadAkg": (lambda x: ops.apply(OPS["PadAkg"], x, head=(1, 0), tail=(0, 2), pad_val=0.5), (X,)),
    "LeakyReLU": (lambda x: ops.leaky_relu(x, 0.2), (X,)),
    "Gelu": (lambda x: ops.gelu(x), (X,)),
    "Select": (lambda x, y: ops.select(ops.less(x, 1.0), x, y), (X, X + 1)),
    "AddN": (lambda x, y: ops.add_n(x, y, x), (X, X)),
    "IsNan": (lambda x: ops.is_nan(ops.log(x)), (X,)),
    **{
        name: (lambda x, name=name: ops.apply(OPS[name], x, axis=(0, 2), keep_dims=True), (IMAGE,))
        for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
    },
}
WRITTEN = sorted(op.name for op in OPS.values() if (op.onnx or op in WRITERS) and op not in WHOLE_MODELS_ONLY)
LOGIC = ("LogicalAnd", "LogicalOr", "LogicalNot")


def case_of(name: str) -> tuple[Callable[..., Any], tuple[np.ndarray, ...]]:
    if name in CASES:
        return CASES[name]
    op = OPS[name]
    operands = (X, X.T.copy().reshape(3, 4) + 1)[: op.arity or 2]
    return lambda *values: ops.apply(op, *values), tuple(x > 0 for x in operands) if name in LOGIC else operands


@pytest.mark.parametrize("opset", [OLDEST_OPSET, 17, 20])
@pytest.mark.parametrize("name", WRITTEN)
def test_onnxruntime_computes_what_the_operator_means(name: str, opset: int) -> None:
    function, arrays = case_of(name)
    graph = gk.trace(function, *arrays)
    assert any(node.op.name == name for node in graph.operators)
    host = OnnxRuntimeHost(threads=1, opset=opset)
    if name == "LayerNorm" and opset < 17:
        assert "opset 17" in host.why_not(graph.operators[0])
        return
    exe = gk.compile(graph, opt_level=0, host=host, strict=True)
    assert all(isinstance(step, RegionStep) for step in exe.plan.steps if step.buffered)
    for got, wanted in zip(exe(*arrays), gk.evaluate(graph, arrays), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", WRITTEN)
def test_no_attribute_is_forgotten(name: str) -> None:
    """Every operator with all attributes that are tried anywhere: what is not refused has the same meaning."""
    host = OnnxRuntimeHost(threads=1)
    for case in cases(OPS[name]):
        builder = Builder()
        inputs = tuple(builder.parameter(f"x{place}", of) for place, of in enumerate(case.bound))
        node = builder.node(case.op, inputs, case.attrs)
        if case.of.name not in ("float32", "int32", "bool") or host.why_not(node):
            continue
        for count in {1, len(node.outs)}:
            executable = gk.compile(Graph("net", inputs, node.outs[:count]), opt_level=0, host=host)
            for values in (positive, mixed):
                arrays = case.arrays(values)
                assert different(executable(*arrays), case.results(arrays)[:count]) is None, f"{case}"


OF_A_NUMBER: dict[str, Callable[..., Any]] = {
    "Transpose": lambda x: ops.transpose(x, ()),
    "Reshape": lambda x: ops.reshape(x, ()),
    "Squeeze": lambda x: ops.squeeze(x),
    "ExpandDims": lambda x: ops.expand_dims(x, ()),
    **{
        name: (lambda x, name=name: ops.apply(OPS[name], x))
        for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd")
    },
}


@pytest.mark.parametrize("opset", [OLDEST_OPSET, 13, 18, 20])
@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_a_number_has_no_axes(name: str, opset: int) -> None:
    x = np.array(1.5, np.float32)
    graph = gk.trace(OF_A_NUMBER[name], x)
    exe = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(threads=1, opset=opset), strict=True)
    np.testing.assert_array_equal(exe(x)[0], x)


@pytest.mark.parametrize(("function", "spec", "reason"), [
    (lambda x: ops.softmax(x, axis=(0, 1)), gk.spec((3, 4)), "Softmax over several axes"),
    (lambda x: ops.gelu(x, approximate="tanh"), gk.spec((3, 4)), "GeLU has no ONNX form"),
    (lambda x: ops.exp(x), gk.spec((3, 4), "bfloat16"), "onnxruntime has no Exp for bfloat16"),
    (lambda x: ops.broadcast_to(x, (3, *x.shape)), gk.spec(("N", 4)), "the symbolic extent N"),
])  # fmt: skip
def test_what_cannot_be_written_says_why(function: Any, spec: TensorType, reason: str) -> None:
    (node,) = gk.trace(function, spec).operators
    host = OnnxRuntimeHost()
    assert host.group(node) is None
    assert host.why_not(node) == reason


@pytest.mark.parametrize("opset", [OLDEST_OPSET, 17, 19, 22])
@pytest.mark.parametrize("pool", [ops.max_pool, ops.avg_pool])
@pytest.mark.parametrize(
    ("kernel", "stride", "pad"), [((3, 1), 2, 0), (2, 3, 1), ((1, 2), (3, 2), (0, 0, 1, 0)), (3, 2, 1)]
)
def test_windows_that_hang_over(pool: Any, kernel: Any, stride: Any, pad: Any, opset: int) -> None:
    for columns in (4, 5, 6, 7):
        x = np.random.default_rng(columns).standard_normal((1, 2, 6, columns)).astype(np.float32)
        graph = gk.trace(lambda x: pool(x, kernel, stride, pad, ceil_mode=True), x)
        exe = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(threads=1, opset=opset), strict=True)
        np.testing.assert_allclose(exe(x)[0], gk.evaluate(graph, [x])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [("N", "M", 8), ("N", 2, "M", 4), (2, "N*M", 4)])
def test_reshape_of_symbolic_extents(shape: tuple[Any, ...]) -> None:
    def net(x: Any) -> Any:
        same = np.eye(8, dtype=np.float32)
        return ops.matmul(ops.reshape(ops.matmul(x, same), gk.spec(shape).shape), same[: shape[-1], : shape[-1]])

    graph = gk.trace(net, gk.spec(("N", "M", 8)))
    x = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    exe = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(), strict=True)
    np.testing.assert_array_equal(exe(x)[0], gk.evaluate(graph, [x])[0])


def test_generic_operators_keep_their_opset_apart() -> None:
    made = Builder()
    x = made.parameter("x", TensorType((3, 4), dtype("float32")))
    attrs = {"op_type": "Relu", "domain": "", "attributes": "[]", "result_types": ("f32[3, 4]",)}
    old = made.node(ONNX, (x,), Attrs.of(opset=9, **attrs)).out
    new = made.node(ONNX, (made.emit(OPS["Neg"], old),), Attrs.of(opset=17, **attrs)).out
    graph = Graph("net", (x,), (new,))
    exe = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(opset=17))
    assert [len(step.nodes) for step in exe.plan.steps if isinstance(step, RegionStep)] == [1, 2]
    np.testing.assert_array_equal(exe(X)[0], np.maximum(-np.maximum(X, 0), 0))


def test_a_session_that_fails_falls_back_to_numpy() -> None:
    made = Builder()
    x = made.parameter("x", TensorType((3, 4), dtype("float32")))
    attrs = Attrs.of(op_type="Relu", domain="nobody", opset=1, attributes="[]", result_types=("f32[3, 4]",))
    y = made.emit(OPS["Neg"], made.emit(OPS["MatMul"], x, x, transpose_b=True))
    graph = Graph("net", (x,), (made.node(ONNX, (x,), attrs).out, y))
    exe = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost())
    assert {entry.code for entry in exe.report.fallbacks} == {"host-onnx.reference"}
    assert "onnxruntime cannot run t2" in exe.report.fallbacks[0].reason


def views() -> Iterator[tuple[str, str]]:
    """Types of which the second is a view of the first."""
    wanted = ("f32[0]", "f32[2, 0]", "f32[0, 4]", "f32[0, B, S, 4]", "f32[4, S, B]", "f32[1, 2, 0, 3]")
    for have, want in product(("f32[0, 3, 4]", "f32[4, 0, 3]", "f32[B, 0, 4]", "f32[B, S, 4]"), wanted):
        source, target = parse_type(have), parse_type(want)
        if source.symbols >= target.symbols and source.size == target.size:
            yield have, want


@pytest.mark.parametrize(("have", "want"), tuple(views()))
def test_a_shape_without_elements_means_what_it_says(have: str, want: str) -> None:
    """To ONNX a 0 in a shape is "as in the operand"."""
    source, target = parse_type(have), parse_type(want)
    builder = Builder()
    x = builder.parameter("x", source)
    same = builder.emit(OPS["Onnx"], x, op_type="Identity", opset=17, attributes="[]", result_types=(have,), domain="")
    view = builder.emit(OPS["Reshape"], same, shape=target.shape)
    last = builder.emit(
        OPS["Onnx"], view, op_type="Identity", opset=17, attributes="[]", result_types=(want,), domain=""
    )
    executable = gk.compile(Graph("net", (x,), (last,)), 0, host=OnnxRuntimeHost(threads=1))
    for sizes in ({"B": 2, "S": 3}, {"B": 0, "S": 3}, {"B": 2, "S": 0}):
        given = np.zeros(concrete_shape(source.shape, sizes), np.float32)
        assert executable(given)[0].shape == concrete_shape(target.shape, sizes)


@pytest.mark.parametrize("shape", ["f32[1, 3]", "f32[1, 1]", "f32[3]"])
def test_nothing_is_expanded_to_nothing(shape: str) -> None:
    builder = Builder()
    x = builder.parameter("x", parse_type(shape))
    same = builder.emit(OPS["Onnx"], x, op_type="Identity", opset=17, attributes="[]", result_types=(shape,), domain="")
    executable = gk.compile(
        Graph("net", (x,), (builder.emit(OPS["BroadcastTo"], same, shape=(0, 3)),)), 0, host=OnnxRuntimeHost(threads=1)
    )
    assert executable(np.zeros(concrete_shape(x.type.shape, {}), np.float32))[0].shape == (0, 3)


@pytest.mark.parametrize(
    "name", ["MatMul", "Conv2D", "MaxPool", "AvgPool", "Gather", "Concat", "LayerNorm", "ReduceMax"]
)
def test_onnxruntime_computes_in_float16_what_it_has(name: str) -> None:
    function, arrays = CASES[name]
    halves = [array.astype(np.float16) if array.dtype == np.float32 else array for array in arrays]
    graph = gk.trace(function, *halves)
    exe = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(threads=1), strict=True)
    expected = gk.compile(gk.trace(function, *arrays), opt_level=0, host="numpy")(*arrays)
    for got, wanted in zip(exe(*halves), expected, strict=True):
        assert got.dtype == (np.float16 if wanted.dtype == np.float32 else wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("of", ["float32", "float16", "int32", "uint8", "bool"])
def test_constant_padding_is_onnx_pad(of: str) -> None:
    x = (np.arange(12).reshape(3, 4) % 2).astype(of)
    builder = Builder()
    given = builder.parameter("x", TensorType(x.shape, dtype(of)))
    value = True if of == "bool" else 3
    padded = builder.emit(OPS["Pad"], given, paddings=(1, 0, 2, 3), value=value)
    exe = gk.compile(Graph("net", (given,), (padded,)), opt_level=0, host=OnnxRuntimeHost(threads=1), strict=True)
    np.testing.assert_array_equal(exe(x)[0], np.pad(x, ((1, 0), (2, 3)), constant_values=np.asarray(value).astype(of)))
