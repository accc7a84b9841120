"""Products, convolution, pooling and gathering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, shape_of, static
from graphkernel.frontends.onnx.rules.volumes import convolved_volume
from graphkernel.frontends.onnx.rules.windows import convolved, pooled, transposed
from graphkernel.ops.catalogue import apply
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_INPUT
from graphkernel.ops.library.host import is_onnx
from graphkernel.ops.library.windows import windows_over, with_places
from graphkernel.ops.tensor.tensor import Tensor
from graphkernel.passes.format.layouts import VOLUME
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.types import Category, Shape, dtype

BYTE_BITS = 8


@onnx_op("MatMul")
def matmul(call: OnnxCall) -> Results:
    """Vectors are matrices of one row or column for the time being."""
    a, b = call.operands
    row, column = len(shape_of(a)) == 1, len(shape_of(b)) == 1
    left, right = ops.expand_dims(a, 0) if row else a, ops.expand_dims(b, 1) if column else b
    product = ops.matmul(left, right)
    rank = len(shape_of(product))
    axes = ([rank - 2] if row else []) + ([rank - 1] if column else [])
    return ops.squeeze(product, axes) if axes else product


@onnx_op("Gemm")
def gemm(call: OnnxCall) -> Results:
    """alpha * a @ b + beta * c."""
    a, b = call.operands[:2]
    product = ops.matmul(a, b, bool(call.attribute("transA", 0)), bool(call.attribute("transB", 0)))
    product = _scaled(product, call.attribute("alpha", 1.0))
    return ops.add(product, _scaled(call.operand(2), call.attribute("beta", 1.0))) if call.has(2) else product


def _scaled(x: Operand, factor: float) -> Operand:
    of = dtype(x.dtype)
    if of.is_integer and factor != int(factor):
        raise TypeRuleError(f"a factor of {factor} for {of}")
    return x if factor == 1.0 else ops.mul(x, np.asarray(factor, of.numpy))


@onnx_op(GATHER.onnx)
def gather(call: OnnxCall) -> Results:
    """The slices of an axis at the indices."""
    return ops.gather(*call.operands, axis=call.attribute("axis", 0))


@onnx_op("OneHot")
def one_hot(call: OnnxCall) -> Results:
    """Negative indices count from the end there, not here."""
    depth, values = call.ints(1), call.array(2)
    if depth is None or values is None:
        return Declined("depth or values are computed at run time")
    indices, (count,) = call.operands[0], depth
    of = dtype(indices.dtype)
    if not of.is_integer:
        return Declined("the indices are no integers")
    if of.category is Category.INT:  # in a type that holds the sum
        indices = ops.cast(indices, dtype("int64"))
        indices = ops.select(ops.less(indices, 0), ops.add(indices, count), indices)
    return ops.one_hot(indices, count, np.asarray(values[1]), np.asarray(values[0]), axis=call.attribute("axis", -1))


@onnx_op("Conv")
def convolution(call: OnnxCall) -> Results:
    """One, two or three spatial axes; the bias is a BiasAdd."""
    rank = len(shape_of(call.operands[0]))
    if rank == VOLUME:
        return convolved_volume(call)
    is_line = rank == 3
    if is_line and any(map(_is_read_from_bytes, call.operands[:2])):
        return Declined("bytes along one axis, which a library multiplies as they are")
    image = _as_image(call, operands=2) if is_line else call
    x, weight = image.operands[:2]
    window = _window(image, shape_of(x), shape_of(weight)[2:])
    if isinstance(window, Declined):
        return window
    window = with_places(window, convolved(image)[2:])
    result = ops.conv2d(x, weight, **window, group=call.attribute("group", 1))
    result = ops.bias_add(result, call.operand(2)) if call.has(2) else result
    return result if image is call else ops.squeeze(result, (2,))


@onnx_op("ConvTranspose")
def transposed_convolution(call: OnnxCall) -> Results:
    """One or two spatial axes of known extents, float32, constant weights; what a convolution's gradient by its image is."""
    x, weight = call.operands[:2]
    dilations, group = call.attribute("dilations", ()), call.attribute("group", 1)
    is_plain = set(dilations) <= {1} and group == 1 and call.attribute("auto_pad", "NOTSET") == "NOTSET"
    rank = len(shape_of(x))
    if not is_plain or rank not in (3, 4) or "output_shape" in call.attributes:
        return Declined("dilations, groups, or padding that follows from the result")
    if dtype(x.dtype) != dtype("float32") or static(shape_of(x)) is None or not _is_constant(weight):
        return Declined("no float32, open extents, or weights that are computed")
    image = _as_image(call, operands=2) if rank == 3 else call
    top, left, bottom, right = image.attribute("pads", (0, 0, 0, 0))
    found = apply(
        CONV2D_BACKPROP_INPUT, *image.operands[:2], stride=tuple(image.attribute("strides", (1, 1))), dilation=(1, 1),
        pad=(top, bottom, left, right), group=1, input_size=transposed(image),
    )  # fmt: skip
    found = ops.bias_add(found, call.operand(2)) if call.has(2) else found
    return found if image is call else ops.squeeze(found, (2,))


def _is_constant(operand: Operand) -> bool:
    return not isinstance(operand, Tensor) or operand.value.is_known


def _is_read_from_bytes(operand: Operand) -> bool:
    return isinstance(operand, Tensor) and is_onnx(operand.value.node, "DequantizeLinear")


@onnx_op("MaxPool")
def max_pool(call: OnnxCall) -> Results:
    """One or two spatial axes, no indices. The greatest of bytes is found among floats, which are the same numbers."""
    of = dtype(call.operands[0].dtype)
    if not of.is_integer or of.bits > BYTE_BITS:
        return _pooled(call, ops.max_pool)
    if call.attribute("auto_pad", "NOTSET").startswith("SAME"):
        return Declined("auto_pad of bytes, which onnxruntime has otherwise than of floats")
    found = _pooled(replace(call, operands=(ops.cast(call.operands[0], dtype("float32")),)), ops.max_pool)
    return found if isinstance(found, Declined) else ops.cast(found, of)


@onnx_op("AveragePool")
def average_pool(call: OnnxCall) -> Results:
    """One or two spatial axes."""
    return _pooled(call, ops.avg_pool, count_include_pad=bool(call.attribute("count_include_pad", 0)))


@onnx_op("LpPool")
def norm_pool(call: OnnxCall) -> Results:
    """On onnxruntime."""
    return Declined("norms of windows")


def _pooled(call: OnnxCall, function: Callable[..., Any], **options: bool) -> Results:
    image = _as_image(call, operands=1) if len(call.attribute("kernel_shape")) == 1 else call
    window = _pooling(image)
    if isinstance(window, Declined):
        return window
    pooled = function(image.operands[0], **window, **options)
    return pooled if image is call else ops.squeeze(pooled, (2,))


def _as_image(call: OnnxCall, operands: int) -> OnnxCall:
    """One spatial axis, of the first so many ``operands``, as the columns of an image of one row."""
    before = {"kernel_shape": (1,), "strides": (1,), "dilations": (1,), "output_padding": (0,)}
    given = {name: (*before[name], *of) if name in before else of for name, of in call.attributes.items()}
    if "pads" in given:
        less, more = given["pads"]
        given["pads"] = (0, less, 0, more)
    images = (ops.expand_dims(each, 2) for each in call.operands[:operands])
    return replace(call, operands=(*images, *call.operands[operands:]), attributes=given)


@onnx_op("GlobalAveragePool")
def global_average_pool(call: OnnxCall) -> Results:
    """The mean over all spatial axes."""
    x = call.operands[0]
    return ops.reduce_mean(x, axis=tuple(range(2, len(shape_of(x)))), keep_dims=True)


@onnx_op("GlobalMaxPool")
def global_max_pool(call: OnnxCall) -> Results:
    """The maximum over all spatial axes."""
    x = call.operands[0]
    return ops.reduce_max(x, axis=tuple(range(2, len(shape_of(x)))), keep_dims=True)


def _pooling(call: OnnxCall) -> dict[str, Any] | Declined:
    kernel = call.attribute("kernel_shape")
    window = _window(call, shape_of(call.operands[0]), kernel)
    if call.results > 1:
        return Declined("the indices are wanted")
    if isinstance(window, Declined):
        return window
    window = with_places(window, pooled(call)[2:])
    return {**window, "kernel_size": tuple(kernel), "ceil_mode": bool(call.attribute("ceil_mode", 0))}


def _window(call: OnnxCall, x: Shape, kernel: Shape) -> dict[str, Any] | Declined:
    """Strides, pads and dilations of two spatial axes."""
    if any(isinstance(extent, int) and extent < 1 for extent in kernel):
        raise ValueError(f"a window of {kernel} elements")
    if len(kernel) != 2:
        return Declined(f"{len(kernel)} spatial axes")
    found = windows_over(x[2:], kernel, call.attributes)
    return Declined(found) if isinstance(found, str) else found
