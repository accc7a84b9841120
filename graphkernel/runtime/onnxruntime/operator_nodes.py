"""Our operators as ONNX nodes, for regions that onnxruntime runs.

A rule says how one operator is written: the ONNX name when operands and meaning agree, or a function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphkernel.ops.library.host import ONNX, onnx_node
from graphkernel.runtime.onnxruntime.node_writer import Unwritable, Write, Writer, element_type, result_names
from graphkernel.runtime.onnxruntime.shape_nodes import SHAPE_WRITERS
from kernelgen.tensor.graph import Node
from kernelgen.tensor.types import Shape

SAME: Mapping[str, str] = {
    "Add": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div", "Neg": "Neg", "Abs": "Abs", "Sign": "Sign",
    "Floor": "Floor", "Ceil": "Ceil", "Round": "Round", "Sqrt": "Sqrt", "Reciprocal": "Reciprocal", "Exp": "Exp", "Log": "Log",
    "Tanh": "Tanh", "Erf": "Erf", "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Sigmoid": "Sigmoid", "ReLU": "Relu",
    "Softplus": "Softplus", "Softsign": "Softsign", "Equal": "Equal", "Less": "Less", "LessEqual": "LessOrEqual",
    "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "LogicalAnd": "And", "LogicalOr": "Or", "LogicalNot": "Not",
    "Select": "Where", "IsNan": "IsNaN", "TensorMove": "Identity", "AddN": "Sum",
    "Maximum": "Max", "Minimum": "Min",
}  # fmt: skip
"""Operators whose ONNX counterpart takes the same operands. Of NaN in Max and Min ONNX says nothing; onnxruntime keeps it."""


TRANSPOSES = ("transpose_a", "transpose_b")


def _matmul(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    if _is_gemm(node):
        turned = {
            name: int(node.attrs.bool(flag, False)) for name, flag in zip(("transA", "transB"), TRANSPOSES, strict=True)
        }
        return writer.emit("Gemm", *x, result=result, **turned)
    operands = list(x)
    for position, flag in enumerate(TRANSPOSES):
        if node.attrs.bool(flag, False):
            rank = node.args[position].type.rank
            operands[position] = writer.emit("Transpose", x[position], perm=(*range(rank - 2), rank - 1, rank - 2))
    if len(operands) == 2:
        return writer.emit("MatMul", *operands, result=result)
    if node.args[2].type.dtype != node.out.type.dtype:
        operands[2] = writer.emit("Cast", operands[2], to=element_type(node.out.type.dtype))
    return writer.emit("Add", writer.emit("MatMul", *operands[:2]), operands[2], result=result)


def _is_gemm(node: Node) -> bool:
    """Whether ONNX's product of two matrices takes the operands as they lie: weights are packed without a turned copy."""
    types = [value.type for value in (*node.args, *node.outs)]
    matrices = all(type_.rank == 2 for type_ in types[:2]) and {type_.dtype.name for type_ in types} == {"float32"}
    inner = types[0].shape[0 if node.attrs.bool("transpose_a", False) else 1]
    is_turned = any(node.attrs.bool(flag, False) for flag in TRANSPOSES)
    return matrices and is_turned and isinstance(inner, int) and inner > 0


def _div(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    divisor = node.args[1].constant
    if node.out.type.dtype.is_integer and (divisor is None or not divisor.all()):
        raise Unwritable("onnxruntime dies of an integer division by zero")
    return writer.emit("Div", *x, result=result)


def _pow(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    if node.out.type.dtype.is_integer:
        raise Unwritable("onnxruntime computes powers of integers in floats")
    return writer.emit("Pow", *x, result=result)


def _gather(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Gather", *x, result=result, axis=node.attrs.int("axis", 0))


def _cast(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Cast", *x, result=result, to=element_type(node.out.type.dtype))


def _conv(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    window = {"strides": node.attrs.ints("stride", (1, 1)), "dilations": node.attrs.ints("dilation", (1, 1))}
    return writer.emit("Conv", *x, result=result, pads=_pads(node), group=node.attrs.int("group", 1), **window)


def _pads(node: Node) -> tuple[int, ...]:
    top, bottom, left, right = node.attrs.ints("pad", (0, 0, 0, 0))
    return (top, left, bottom, right)


def _max_pool(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("MaxPool", *x, result=result, **_window(node, writer.opset >= 10))


def _avg_pool(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    counted = node.attrs.bool("count_include_pad", False)
    window = _window(node, writer.opset >= 19, counted)
    return writer.emit("AveragePool", *x, result=result, count_include_pad=int(counted), **window)


def _window(node: Node, dilated: bool, counted: bool = False) -> dict[str, Any]:
    """Windows that hang over are said by the padding that they reach, where padding is not counted.

    ONNX's inference counts those that start in the padding, and onnxruntime refuses what does not fit the inference.
    """
    kernel, stride = node.attrs.ints("kernel_size"), node.attrs.ints("stride", (1, 1))
    dilation, pads, over = node.attrs.ints("dilation", (1, 1)), _pads(node), node.attrs.bool("ceil_mode", False)
    extents, counts = _static(node.args[0].type.shape[2:]), _static(node.types[0].shape[2:])
    if over and extents and counts:
        parts = zip(counts, stride, dilation, kernel, extents, pads[:2], strict=True)
        reached = [(count - 1) * s + d * (k - 1) + 1 - n - before for count, s, d, k, n, before in parts]
        if counted and any(after - more >= s for after, more, s in zip(pads[2:], reached, stride, strict=True)):
            raise Unwritable("counted padding in which windows would start")
        pads, over = pads if counted else (*pads[:2], *(max(0, each) for each in reached)), counted
    window = {"kernel_shape": kernel, "strides": stride, "pads": pads, "ceil_mode": int(over)}
    if dilation == (1, 1):
        return window
    if not dilated or over:
        raise Unwritable("dilated pooling before its opset, or with windows that hang over")
    return {**window, "dilations": dilation}


def _static(dims: Shape) -> tuple[int, ...] | None:
    numbers = tuple(dim for dim in dims if isinstance(dim, int))
    return numbers if len(numbers) == len(dims) else None


def _batch_norm(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    if node.attrs.bool("is_training", False) or node.attrs.str("data_format", "NCHW") != "NCHW":
        raise Unwritable("BatchNorm in training, or with channels last")
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


REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")


def _reduce(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    axes = node.attrs.ints("axis", ()) or tuple(range(node.args[0].type.rank))
    keep = {"keepdims": int(node.attrs.bool("keep_dims", False))}
    name = node.op.name
    if writer.opset >= 18 or name == "ReduceSum":
        return writer.emit(name, x[0], writer.ints(axes), result=result, **keep)
    return writer.emit(name, x[0], result=result, axes=axes, **keep)


WRITERS: Mapping[str, Write] = {
    **SHAPE_WRITERS,
    **dict.fromkeys(("MatMul", "BatchMatMul"), _matmul),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(REDUCTIONS, _reduce),
    "Div": _div, "Pow": _pow,
    "Gather": _gather, "Cast": _cast, "Conv2D": _conv, "MaxPool": _max_pool, "AvgPool": _avg_pool, "BatchNorm": _batch_norm,
    "LayerNorm": _layer_norm, "Gelu": _gelu, "Square": _square, "Rsqrt": _rsqrt, "SiLU": _silu, "LeakyReLU": _leaky_relu,
    "BiasAdd": _bias_add,
}  # fmt: skip


def write(writer: Writer, node: Node, operands: tuple[str, ...], result: str) -> None:
    """Appends the ONNX form of a node; its results are :func:`result_names`. Raises :class:`Unwritable`."""
    if node.op is ONNX:
        writer.nodes.append(onnx_node(node.attrs, operands, result_names(result, len(node.types))))
    elif node.op.name in SAME:
        writer.emit(SAME[node.op.name], *operands, result=result)
    elif node.op.name in WRITERS:
        WRITERS[node.op.name](writer, node, operands, result)
    else:
        raise Unwritable(f"{node.op.name} has no ONNX form")
