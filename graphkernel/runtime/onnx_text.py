"""Our operators as ONNX nodes, for regions that onnxruntime runs.

A rule says how one operator is written: a name when operands and meaning agree, or a function that yields
(ONNX operator, operands, attributes) triples, of which the last gives the result. The opset is 13 or later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphkernel.ir.graph import Node
from graphkernel.ir.types import DType, Shape, Sym

DEFAULT_OPSET = 17
OLDEST_OPSET = 13  # that the rules below can write


@dataclass
class Writer:
    """Collects the ONNX nodes and constants of one model. Names are made unique by a number."""

    opset: int
    nodes: list[Any] = field(default_factory=list[Any])
    constants: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])

    def constant(self, array: np.ndarray) -> str:
        """The name of a new constant."""
        name = f"k{len(self.constants)}"
        self.constants[name] = array
        return name

    def ints(self, values: tuple[int, ...]) -> str:
        """The name of a new int64 vector."""
        return self.constant(np.asarray(values, np.int64))

    def emit(self, op_type: str, *operands: str, result: str = "", **attributes: Any) -> str:  # noqa: ANN401  # as onnx takes them
        """Appends a node with one result and gives the result's name."""
        name = result or f"n{len(self.nodes)}"
        self.append(op_type, operands, [name], **attributes)
        return name

    def append(self, op_type: str, operands: Sequence[str], results: Sequence[str], **attributes: Any) -> None:  # noqa: ANN401
        """Appends a node with any number of results."""
        from onnx import helper  # the extra "onnx" is needed only when a region is built

        self.nodes.append(helper.make_node(op_type, operands, results, **attributes))


Write = Callable[[Writer, Node, tuple[str, ...], str], object]
"""(writer, node, operand names, result name): appends nodes, the last of which makes the result."""

SAME: Mapping[str, str] = {
    "Add": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div", "Div": "Div", "Neg": "Neg", "Abs": "Abs", "Sign": "Sign",
    "Floor": "Floor", "Ceil": "Ceil", "Round": "Round", "Sqrt": "Sqrt", "Reciprocal": "Reciprocal", "Exp": "Exp", "Log": "Log",
    "Tanh": "Tanh", "Erf": "Erf", "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Sigmoid": "Sigmoid", "ReLU": "Relu",
    "Softplus": "Softplus", "Softsign": "Softsign", "Pow": "Pow", "Equal": "Equal", "Less": "Less", "LessEqual": "LessOrEqual",
    "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "LogicalAnd": "And", "LogicalOr": "Or", "LogicalNot": "Not",
    "Select": "Where", "IsNan": "IsNaN", "TensorMove": "Identity", "AddN": "Sum",
    "Maximum": "Max", "Minimum": "Min",
}  # fmt: skip
"""Operators whose ONNX counterpart takes the same operands. Of NaN in Max and Min ONNX says nothing; onnxruntime keeps it."""


def _reshape(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Reshape", x[0], shape_operand(writer, x[0], node.args[0].type.shape, node.out.type.shape), result=result)


def shape_operand(writer: Writer, x: str, have: Shape, want: Shape) -> str:
    """The shape as a tensor: constant when static, with one -1 when that is enough, else taken from the operand's shape."""
    if sum(isinstance(dim, Sym) for dim in want) <= 1:
        return writer.ints(tuple(-1 if isinstance(dim, Sym) else dim for dim in want))
    parts: list[str] = []
    shape = ""
    for dim in want:
        if isinstance(dim, int):
            parts.append(writer.ints((dim,)))
            continue
        shape = shape or writer.emit("Shape", x)
        parts.append(_dim_operand(writer, shape, have, dim))
    return writer.emit("Concat", *parts, axis=0)


def _dim_operand(writer: Writer, shape: str, have: Shape, want: Sym) -> str:
    """One symbolic extent as a vector of one element: a sum of products of the operand's extents."""
    known = {dim.symbols[0]: axis for axis, dim in enumerate(have) if isinstance(dim, Sym) and dim == _symbol(dim)}
    total = ""
    for monomial, coefficient in want.terms:
        factor = writer.ints((coefficient,))
        for name in monomial:
            if name not in known:
                raise Unwritable(f"the extent {want} does not follow from the operand's shape")
            factor = writer.emit("Mul", factor, writer.emit("Gather", shape, writer.ints((known[name],)), axis=0))
        total = writer.emit("Add", total, factor) if total else factor
    return total


def _symbol(dim: Sym) -> Sym:
    return Sym((((dim.symbols[0],), 1),))


class Unwritable(Exception):
    """The operator, with these types and attributes, has no ONNX form; the message says why."""


def _transpose(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Transpose", x[0], result=result, perm=node.attrs.ints("perm"))


def _matmul(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    operands = list(x)
    for position, flag in enumerate(("transpose_a", "transpose_b")):
        if node.attrs.bool(flag, False):
            rank = node.args[position].type.rank
            operands[position] = writer.emit("Transpose", x[position], perm=(*range(rank - 2), rank - 1, rank - 2))
    return writer.emit("MatMul", *operands, result=result)


def _gather(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Gather", *x, result=result, axis=node.attrs.int("axis", 0))


def _cast(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Cast", *x, result=result, to=element_type(node.out.type.dtype))


def _concat(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Concat", *x, result=result, axis=node.attrs.int("axis"))


def _broadcast_to(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    shape = tuple(dim if isinstance(dim, int) else _unwritable(f"the symbolic extent {dim}") for dim in node.out.type.shape)
    return writer.emit("Expand", x[0], writer.ints(shape), result=result)


def _unwritable(what: str) -> Any:  # noqa: ANN401  # never returns
    raise Unwritable(what)


def _slice(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    begin, end, strides = (node.attrs.dims(name) for name in ("begin", "end", "strides"))
    have = node.args[0].type.shape
    cut = [axis for axis, dim in enumerate(have) if (begin[axis], end[axis], strides[axis]) != (0, dim, 1)]
    if any(isinstance(begin[axis], Sym) or isinstance(end[axis], Sym) for axis in cut):
        raise Unwritable("a symbolic slice")
    stop = tuple(-(2**62) if end[axis] == -1 and strides[axis] == -1 else end[axis] for axis in cut)
    starts, steps = tuple(begin[axis] for axis in cut), tuple(int(str(strides[axis])) for axis in cut)
    operands = (writer.ints(part) for part in (starts, stop, tuple(cut), steps))  # type: ignore[arg-type]
    return writer.emit("Slice", x[0], *operands, result=result)


def _conv(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    window = {"strides": node.attrs.ints("stride", (1, 1)), "dilations": node.attrs.ints("dilation", (1, 1))}
    return writer.emit("Conv", *x, result=result, pads=_pads(node), group=node.attrs.int("group", 1), **window)


def _pads(node: Node) -> tuple[int, ...]:
    top, bottom, left, right = node.attrs.ints("pad", (0, 0, 0, 0))
    return (top, left, bottom, right)


def _max_pool(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("MaxPool", *x, result=result, **_window(node))


def _avg_pool(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    counted = int(node.attrs.bool("count_include_pad", False))
    return writer.emit("AveragePool", *x, result=result, count_include_pad=counted, **_window(node))


def _window(node: Node) -> dict[str, Any]:
    if node.attrs.ints("dilation", (1, 1)) != (1, 1):
        raise Unwritable("dilated pooling")
    shape = {"kernel_shape": node.attrs.ints("kernel_size"), "strides": node.attrs.ints("stride", (1, 1))}
    return {**shape, "pads": _pads(node), "ceil_mode": int(node.attrs.bool("ceil_mode", False))}


def _batch_norm(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("BatchNormalization", *x, result=result, epsilon=node.attrs.float("epsilon", 1e-5))


def _softmax(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    axes = node.attrs.ints("axis", (-1,))
    if len(axes) != 1:
        raise Unwritable("Softmax over several axes")
    return writer.emit(node.op.name, *x, result=result, axis=axes[0])


def _layer_norm(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    axis = node.attrs.int("begin_norm_axis", -1) % node.args[0].type.rank
    if axis != node.attrs.int("begin_params_axis", -1) % node.args[0].type.rank:
        raise Unwritable("LayerNorm whose parameters have other axes")
    if writer.opset < 17:
        raise Unwritable("LayerNormalization is in opset 17")
    axes = tuple(range(axis, node.args[0].type.rank))
    _, mean, variance = result_names(result, 3)  # nodes that nothing needs are pruned
    _mean(writer, x[0], axes, mean)
    difference = writer.emit("Sub", x[0], mean)
    _mean(writer, writer.emit("Mul", difference, difference), axes, variance)
    return writer.emit("LayerNormalization", *x, result=result, axis=axis, epsilon=node.attrs.float("epsilon", 1e-7))


def _mean(writer: Writer, x: str, axes: tuple[int, ...], result: str) -> str:
    if writer.opset >= 18:
        return writer.emit("ReduceMean", x, writer.ints(axes), result=result, keepdims=1)
    return writer.emit("ReduceMean", x, result=result, axes=axes, keepdims=1)


def _gelu(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    if node.op.name == "GeLU" or node.attrs.str("approximate", "none") != "none":
        raise Unwritable("the tanh form of gelu")
    half, one = (writer.constant(np.asarray(value, node.out.type.dtype.numpy)) for value in (0.5, 1.0))
    scale = writer.constant(np.asarray(np.sqrt(0.5), node.out.type.dtype.numpy))
    phi = writer.emit("Add", writer.emit("Erf", writer.emit("Mul", x[0], scale)), one)
    return writer.emit("Mul", writer.emit("Mul", x[0], half), phi, result=result)


def _square(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Mul", x[0], x[0], result=result)


def _rsqrt(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Reciprocal", writer.emit("Sqrt", x[0]), result=result)


def _silu(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Mul", x[0], writer.emit("Sigmoid", x[0]), result=result)


def _leaky_relu(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("LeakyRelu", x[0], result=result, alpha=node.attrs.float("alpha", 0.01))


def _bias_add(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    rank = node.args[0].type.rank
    channel = rank - 1 if node.attrs.str("data_format", "NCHW") == "NHWC" else 1
    bias = writer.emit("Reshape", x[1], writer.ints(tuple(-1 if axis == channel else 1 for axis in range(rank))))
    return writer.emit("Add", x[0], bias, result=result)


REDUCTIONS: Mapping[str, str] = {
    "ReduceSum": "ReduceSum", "ReduceMean": "ReduceMean", "ReduceMax": "ReduceMax", "ReduceMin": "ReduceMin", "ReduceProd": "ReduceProd",
}  # fmt: skip


def _reduce(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    axes = node.attrs.ints("axis", ()) or tuple(range(node.args[0].type.rank))
    keep = {"keepdims": int(node.attrs.bool("keep_dims", False))}
    name = REDUCTIONS[node.op.name]
    if writer.opset >= 18 or name == "ReduceSum":
        return writer.emit(name, x[0], writer.ints(axes), result=result, **keep)
    return writer.emit(name, x[0], result=result, axes=axes, **keep)


def _split(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    sizes = writer.ints(node.attrs.ints("size_splits"))
    return writer.append("Split", (x[0], sizes), result_names(result, len(node.types)), axis=node.attrs.int("axis"))


WRITERS: Mapping[str, Write] = {
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze", "Flatten"), _reshape),
    **dict.fromkeys(("MatMul", "BatchMatMul"), _matmul),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(REDUCTIONS, _reduce),
    "Transpose": _transpose, "Gather": _gather, "Cast": _cast, "Concat": _concat, "BroadcastTo": _broadcast_to,
    "StridedSlice": _slice, "Split": _split, "Conv2D": _conv, "MaxPool": _max_pool, "AvgPool": _avg_pool,
    "BatchNorm": _batch_norm, "LayerNorm": _layer_norm, "Gelu": _gelu, "Square": _square, "Rsqrt": _rsqrt, "SiLU": _silu,
    "LeakyReLU": _leaky_relu, "BiasAdd": _bias_add,
}  # fmt: skip


def element_type(of: DType) -> int:
    """ONNX's number of a data type."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(of.numpy))


def result_names(result: str, count: int) -> tuple[str, ...]:
    """The names of a node's results when the first is called ``result``."""
    return (result, *(f"{result}_{index}" for index in range(1, count)))


def write(writer: Writer, node: Node, operands: tuple[str, ...], result: str) -> None:
    """Appends the ONNX form of a node; its results are :func:`result_names`. Raises :class:`Unwritable`."""
    if node.op.name == "Onnx":
        from graphkernel.ops.host import onnx_node

        writer.nodes.append(onnx_node(node.attrs, operands, result_names(result, len(node.types))))
    elif node.op.name in SAME:
        writer.emit(SAME[node.op.name], *operands, result=result)
    elif node.op.name in WRITERS:
        WRITERS[node.op.name](writer, node, operands, result)
    else:
        raise Unwritable(f"{node.op.name} has no ONNX form")
