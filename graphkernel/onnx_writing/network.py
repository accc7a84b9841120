"""Products, convolutions, pools and normalisations as ONNX nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphkernel.onnx_writing.convolution_gradients import pads
from graphkernel.onnx_writing.writer import Unwritable, Write, Writer, cast, reduce, result_names, scalar
from graphkernel.ops.composite.batch_normalization import BATCH_NORM
from graphkernel.ops.composite.normalize import LAYER_NORM, LOG_SOFTMAX, SOFTMAX
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.matmul import (
    BATCH_MATMUL,
    BITS,
    HALF_NIBBLE,
    MATMUL,
    MATMUL_INTEGER,
    NIBBLE,
    STORED_MATMUL,
)
from kernelgen.tensor.operators.nn import AVG_POOL, BYTE_SUMS, CONV2D, MAX_POOL, NHWC, is_nhwc
from kernelgen.tensor.operators.pieces import CONCAT
from kernelgen.tensor.operators.pool import POOL2D, as_pooling, pooling_of
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.types import Shape, dtype

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
            operands[position] = writer.emit(TRANSPOSE.onnx, x[position], perm=(*range(rank - 2), rank - 1, rank - 2))
    if len(operands) == 2:
        return writer.emit("MatMul", *operands, result=result)
    if node.args[2].type.dtype != node.out.type.dtype:
        operands[2] = cast(writer, operands[2], node.out.type.dtype)
    return writer.emit("Add", writer.emit("MatMul", *operands[:2]), operands[2], result=result)


def _is_gemm(node: Node) -> bool:
    """Whether ONNX's product of two matrices takes the operands as they lie: weights are packed without a turned copy."""
    turned = [node.attrs.bool(flag, False) for flag in TRANSPOSES]
    left, right = (value.type for value in node.args[:2])
    if not any(turned) or (left.rank, right.rank) != (2, 2):
        return False
    inner = left.shape[0] if turned[0] else left.shape[1]
    only_float32 = {value.type.dtype.name for value in (*node.args, *node.outs)} == {"float32"}
    return only_float32 and isinstance(inner, int) and inner > 0


def _stored_matmul(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """The weights as float32 numbers, less their zero points and times their scales, and a product with them."""
    groups, terms, columns = node.args[1].type.shape
    wide, of = cast(writer, x[1], "float32"), dtype("float32")
    if node.attrs.int(BITS, 0) == NIBBLE:
        wide = writer.emit("Sub", _nibbles(writer, wide, (groups, terms, 1, columns)), scalar(writer, of, HALF_NIBBLE))
        terms = terms * 2
    each = writer.extents((groups, 1, columns))
    for zeros in x[3:4]:
        wide = writer.emit("Sub", wide, writer.emit(RESHAPE.name, zeros, each))
    for scales in x[2:3]:
        wide = writer.emit("Mul", wide, writer.emit(RESHAPE.name, scales, each))
    weights = writer.emit(RESHAPE.name, wide, writer.extents((groups * terms, columns)))
    return writer.emit("MatMul", x[0], cast(writer, weights, node.out.type.dtype), result=result)


def _matmul_integer(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit(MATMUL_INTEGER.name, *x, result=result)


def _nibbles(writer: Writer, pairs: str, shape: Shape) -> str:
    """The low and the high half of each byte, one after the other along the terms."""
    base = scalar(writer, dtype("float32"), 2 * HALF_NIBBLE)
    high = writer.emit("Floor", writer.emit("Div", pairs, base))
    low = writer.emit("Sub", pairs, writer.emit("Mul", high, base))
    halves = (writer.emit(RESHAPE.name, half, writer.extents(shape)) for half in (low, high))
    groups, terms, _, columns = shape
    return writer.emit(
        RESHAPE.name, writer.emit(CONCAT.onnx, *halves, axis=2), writer.extents((groups, terms * 2, columns))
    )


def _in_planes(write: Write) -> Write:
    """The writer of an operator on images, in NHWC too: ONNX has channels first."""

    def written(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
        if not is_nhwc(node.attrs):
            return write(writer, node, x, result)
        turns = ((0, 3, 1, 2), (3, 2, 0, 1))
        planes = tuple(writer.emit(TRANSPOSE.onnx, name, perm=turn) for name, turn in zip(x, turns, strict=False))
        *_, made = result_names(result, 2)
        write(writer, node, planes, made)
        return writer.emit(TRANSPOSE.onnx, made, result=result, perm=(0, 2, 3, 1))

    return written


def _conv(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    window = {"strides": node.attrs.ints("stride", (1, 1)), "dilations": node.attrs.ints("dilation", (1, 1))}
    name = "ConvInteger" if node.out.type.dtype == BYTE_SUMS else "Conv"
    if name == "Conv" and not node.args[0].type.dtype.is_float:
        x = (cast(writer, x[0], node.out.type.dtype), *x[1:])
    return writer.emit(name, *x, result=result, pads=pads(node), group=node.attrs.int("group", 1), **window)


def _max_pool(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("MaxPool", *x, result=result, **_window(node, writer.opset >= 10))


def _avg_pool(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    counted = node.attrs.bool("count_include_pad", False)
    window = _window(node, writer.opset >= 19, counted)
    return writer.emit("AveragePool", *x, result=result, count_include_pad=int(counted), **window)


def _pool2d(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """AKG's pooling as the one that it stands for."""
    of, last = node.args[0].type, node.attrs.str("data_layout", "NCHW") == NHWC
    pooling = pooling_of(node.attrs)
    if node.attrs.bool("global", False):
        kind = "ReduceMax" if pooling is MAX_POOL else "ReduceMean"
        return reduce(writer, kind, x[0], (1, 2) if last else (2, 3), 1, result)
    attrs = as_pooling(of.shape, node.attrs)
    if max(attrs.ints("pad")) >= min(attrs.ints("kernel_size")):
        raise Unwritable("margins as wide as a window")  # onnxruntime has no number for windows outside of the image
    return WRITERS[pooling](writer, replace(node, op=pooling, attrs=attrs), x, result)


def _window(node: Node, dilated: bool, counted: bool = False) -> dict[str, Any]:
    """Windows that hang over are said by the padding that they reach, where padding is not counted.

    ONNX's inference counts those that start in the padding, and onnxruntime refuses what does not fit the inference.
    """
    kernel, stride = node.attrs.ints("kernel_size"), node.attrs.ints("stride", (1, 1))
    dilation, margins, over = node.attrs.ints("dilation", (1, 1)), pads(node), node.attrs.bool("ceil_mode", False)
    spatial = slice(1, 3) if is_nhwc(node.attrs) else slice(2, 4)
    extents, counts = _static(node.args[0].type.shape[spatial]), _static(node.types[0].shape[spatial])
    if over and extents and counts:
        parts = zip(counts, stride, dilation, kernel, extents, margins[:2], strict=True)
        reached = [(count - 1) * s + d * (k - 1) + 1 - n - before for count, s, d, k, n, before in parts]
        if counted and any(after - more >= s for after, more, s in zip(margins[2:], reached, stride, strict=True)):
            raise Unwritable("counted padding in which windows would start")
        margins, over = margins if counted else (*margins[:2], *(max(0, each) for each in reached)), counted
    window = {"kernel_shape": kernel, "strides": stride, "pads": margins, "ceil_mode": int(over)}
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
    return writer.emit(node.op.onnx, *x, result=result, axis=axes[0])


def _layer_norm(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    axis = node.attrs.int("begin_norm_axis", -1) % node.args[0].type.rank
    if axis != node.attrs.int("begin_params_axis", -1) % node.args[0].type.rank:
        raise Unwritable("LayerNorm whose parameters have other axes")
    if writer.opset < 17:
        raise Unwritable("LayerNormalization is in opset 17")
    axes = tuple(range(axis, node.args[0].type.rank))
    _, mean, variance = result_names(result, 3)  # nodes that nothing needs are pruned
    reduce(writer, "ReduceMean", x[0], axes, 1, mean)
    difference = writer.emit("Sub", x[0], mean)
    reduce(writer, "ReduceMean", writer.emit("Mul", difference, difference), axes, 1, variance)
    return writer.emit("LayerNormalization", *x, result=result, axis=axis, epsilon=node.attrs.float("epsilon", 1e-7))


WRITERS: Mapping[Operator, Write] = {
    MATMUL: _matmul, BATCH_MATMUL: _matmul, SOFTMAX: _softmax, LOG_SOFTMAX: _softmax, CONV2D: _in_planes(_conv),
    MAX_POOL: _in_planes(_max_pool), AVG_POOL: _in_planes(_avg_pool), BATCH_NORM: _batch_norm, LAYER_NORM: _layer_norm,
}  # fmt: skip
WHOLE_MODELS_ONLY: Mapping[Operator, Write] = {
    POOL2D: _pool2d, STORED_MATMUL: _stored_matmul, MATMUL_INTEGER: _matmul_integer,
}  # fmt: skip
