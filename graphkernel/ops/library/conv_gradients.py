"""The gradients of the convolution. Layout NCHW, attributes as ``Conv2D``; a CPU may have kernels of them with channels last.

``input_size`` and ``filter_size`` say the shape of the gradient, which the stride does not leave in the operands. That of the
weights is known with channels last too: HWIO, of images in NHWC.
"""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import dims
from kernelgen.tensor.operators.families import Array, declare, rounded
from kernelgen.tensor.operators.nn import CONV2D, CONV_ATTRIBUTES, FORMAT, is_nhwc
from kernelgen.tensor.operators.type_rules import expect_dtype, floating, shape_text
from kernelgen.tensor.types import Attrs, Shape, TensorType

Types = tuple[TensorType, ...]


def _expect_convolution(x: TensorType, weight: TensorType, dy: TensorType, attrs: Attrs) -> None:
    """The gradient of the result has the type of the result."""
    forward = {name: attrs[name] for name in CONV2D.attribute_names if name in attrs}
    (result,) = CONV2D.infer((x, weight), Attrs.of(forward))
    if result.shape != dy.shape:
        raise TypeRuleError(f"the convolution gives {shape_text(result.shape)}, dy has {shape_text(dy.shape)}")


def _input_type(types: Types, attrs: Attrs) -> Types:
    dy, weight = types
    x = TensorType(_size(attrs, "input_size"), expect_dtype(floating, dy, weight))
    _expect_convolution(x, weight, dy, attrs)
    return (x,)


def _filter_type(types: Types, attrs: Attrs) -> Types:
    dy, x = types
    weight = TensorType(_size(attrs, "filter_size"), expect_dtype(floating, dy, x))
    _expect_convolution(x, weight, dy, attrs)
    return (weight,)


def _size(attrs: Attrs, name: str) -> Shape:
    size = attrs.dims(name)
    if len(size) != 4:
        raise TypeRuleError(f"{name} must be a shape of rank 4, got {shape_text(size)}")
    return size


def _input_gradient(dy: Array, weight: Array, *, attrs: Attrs) -> Array:
    """Each kernel position scatters dy times its weights to where the windows read."""
    size = tuple(int(str(extent)) for extent in _size(attrs, "input_size"))
    return rounded(lambda wide_dy, wide_weight: _scattered(wide_dy, wide_weight, size, attrs))(dy, weight)


def _scattered(dy: Array, weight: Array, size: tuple[int, ...], attrs: Attrs) -> Array:
    group, (out, inner, *kernel) = attrs.int("group", 1), weight.shape
    top, bottom, left, right = attrs.ints("pad", (0, 0, 0, 0))
    n, _, height, width = size
    padded = np.zeros((n, group, inner, height + top + bottom, width + left + right), dy.dtype)
    grouped = dy.reshape(n, group, out // group, *dy.shape[2:])
    weights = weight.reshape(group, out // group, inner, *kernel)
    for a, b in np.ndindex(*kernel):
        rows, columns = _reads((a, b), dy.shape[2:], attrs)
        padded[..., rows, columns] += np.einsum("ngohw,goi->ngihw", grouped, weights[..., a, b], optimize=True)
    return padded[..., top : top + height, left : left + width].reshape(size)


def _filter_gradient(dy: Array, x: Array, *, attrs: Attrs) -> Array:
    """Each kernel position correlates dy with what the windows read there."""
    size = tuple(int(str(extent)) for extent in _size(attrs, "filter_size"))
    if not is_nhwc(attrs):
        return rounded(lambda wide_dy, wide_x: _correlated(wide_dy, wide_x, size, attrs))(dy, x)
    planes = (np.moveaxis(image, -1, 1) for image in (dy, x))
    height, width, inner, out = size
    turned = attrs.without("format").with_(filter_size=(out, inner, height, width))
    return np.transpose(_filter_gradient(*planes, attrs=turned), (2, 3, 1, 0))


def _correlated(dy: Array, x: Array, size: tuple[int, ...], attrs: Attrs) -> Array:
    group, (out, inner, *kernel) = attrs.int("group", 1), size
    top, bottom, left, right = attrs.ints("pad", (0, 0, 0, 0))
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    read = padded.reshape(len(x), group, inner, *padded.shape[2:])
    grouped = dy.reshape(len(x), group, out // group, *dy.shape[2:])
    result = np.empty((group, out // group, inner, *kernel), dy.dtype)
    for a, b in np.ndindex(*kernel):
        rows, columns = _reads((a, b), dy.shape[2:], attrs)
        result[..., a, b] = np.einsum("ngohw,ngihw->goi", grouped, read[..., rows, columns], optimize=True)
    return result.reshape(size)


def _reads(position: tuple[int, int], windows: tuple[int, ...], attrs: Attrs) -> tuple[slice, slice]:
    """Where the windows read the padded input at a kernel position."""
    strides, dilations = attrs.ints("stride", (1, 1)), attrs.ints("dilation", (1, 1))
    rows, columns = (
        slice(at * dilation, at * dilation + stride * (count - 1) + 1, stride)
        for at, dilation, stride, count in zip(position, dilations, strides, windows, strict=True)
    )
    return rows, columns


CONV2D_BACKPROP_INPUT = declare(
    "Conv2DBackpropInput",
    Kind.OPAQUE,
    2,
    _input_type,
    _input_gradient,
    attributes=(*CONV_ATTRIBUTES, dims("input_size")),
    doc="(dy, weight) -> dx.",
)
CONV2D_BACKPROP_FILTER = declare(
    "Conv2DBackpropFilter",
    Kind.OPAQUE,
    2,
    _filter_type,
    _filter_gradient,
    attributes=(*CONV_ATTRIBUTES, dims("filter_size"), FORMAT),
    doc="(dy, x) -> dweight, NCHW and OIHW or NHWC and HWIO.",
)
