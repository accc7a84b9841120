"""Convolutions and their gradients with channels last: products where windows are points, else convolutions of HWIO weights.

    dx = Conv2DBackpropInput(dy, w)      ==>    dx' = Conv2D(dy', w turned round)
                                         ==>    dx' = phases of Conv2D(dy', parts of w)    with strides, and constants w
    dw = Conv2DBackpropFilter(dy, x)     ==>    dw' = Conv2DBackpropFilter(dy', x')    where tiles are fewer multiplications
                                         ==>    dw' = MatMul(patches of x, dy')        where patches are few
                                         ==>    dw' = Conv2D(x'', dy'')        channels take the place of images, in x'' and dw'

Weights that are no constants are put into their order at every call: they are small beside images. Their gradients leave in the
order that weights have. What is said to go by tiles waits for the pass winograd, which has those of the convolution itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from graphkernel import ops
from graphkernel.cluster.convolution_cost import Windows, gradient_cost, own_ways, tiles_along, windows_of
from graphkernel.ops import Tensor
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_FILTER, CONV2D_BACKPROP_INPUT
from graphkernel.passes.format.layouts import FLOAT, PLAIN_PRODUCT, Form
from graphkernel.passes.format.taps_inside import sum_of_taps
from graphkernel.passes.format.tiles import PLACES, WINDOW
from graphkernel.passes.format.transposed_phases import has_phases, of_phases
from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL_INTEGER
from kernelgen.tensor.operators.nn import BYTE_SUMS, CONV2D, NHWC, is_nhwc
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import Attrs, Shape, TensorType

PIECE = 32
"""Channels of weights on either side that are put into another order at a time."""

MOST_PATCHES = 1 << 26
"""Bytes of the patches whose product is the gradient of weights: more memory than that is not taken."""


def has_form(node: Node) -> bool:
    """Whether a ``node`` is a convolution in NCHW, or a gradient of one, and has a form with channels last."""
    if is_nhwc(node.attrs) or len(node.args) != 2:
        return False
    if node.op is CONV2D and node.args[1].is_known:
        return node.out.type.dtype in (FLOAT, BYTE_SUMS)
    if node.out.type.dtype != FLOAT:
        return False
    known = all(isinstance(dim, int) for value in (*node.args, node.out) for dim in value.type.shape)
    if not known or node.attrs.int("group", 1) != 1:
        return False
    return node.op is not CONV2D_BACKPROP_INPUT or has_phases(node) or (_is_dense(node) and _has_margins(node))


def _is_dense(node: Node) -> bool:
    return node.attrs.ints("stride", (1, 1)) == (1, 1)


def _has_margins(node: Node) -> bool:
    """Whether windows of ``dy`` have no place outside of what a padding can say."""
    return min(_margins(node)) >= 0


def _margins(node: Node) -> tuple[int, ...]:
    """The padding of ``dy`` where each element of ``dx`` is a sum over the windows that read it."""
    (height, width), (down, right) = node.args[1].type.shape[2:], node.attrs.ints("dilation", (1, 1))
    spans = (down * (int(str(height)) - 1),) * 2 + (right * (int(str(width)) - 1),) * 2
    return tuple(span - pad for span, pad in zip(spans, node.attrs.ints("pad", (0, 0, 0, 0)), strict=True))


def _convolved(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    image, weights = args
    kind = windows_of(node)
    if not weights.is_known:
        if kind is Windows.POINTS:
            return (_product(image, weights, builder, turned=True),)
        last = builder.emit(TRANSPOSE, weights, perm=(2, 3, 1, 0))
        return (_convolution(image, last, node.attrs, builder, node.name),)
    outer, inner, height, width = (int(str(dim)) for dim in weights.type.shape)
    if kind in (Windows.POINTS, Windows.PATCHES):
        patches = image if kind is Windows.POINTS else _patches(node, image, builder)
        matrix = TensorType((height * width * inner, outer), weights.type.dtype)
        held = builder.derived(_matrix, weights, of=matrix)
        if node.out.type.dtype == BYTE_SUMS:
            return (builder.emit(MATMUL_INTEGER, patches, held, name=node.name, **{OWN_KERNEL: True}),)
        return (builder.emit(BATCH_MATMUL, patches, held, name=node.name, **PLAIN_PRODUCT),)
    if own_ways(node, kind).by_taps:
        return (sum_of_taps(node, image, weights, builder),)
    last = TensorType((height, width, inner, outer), weights.type.dtype)
    held = builder.derived(channels_last, weights, of=last)
    return (_convolution(image, held, node.attrs, builder, node.name),)


def _matrix(weights: np.ndarray) -> np.ndarray:
    """Weights [O, I, H, W] as [H * W * I, O]."""
    return channels_last(weights).reshape(-1, len(weights))


def channels_last(weights: np.ndarray) -> np.ndarray:
    """Weights [O, I, H, W] as [H, W, I, O], read-only; in pieces whose lines stay in a cache while they are read across."""
    outer, inner, height, width = weights.shape
    lines = weights.reshape(outer, inner, height * width)
    found = np.empty((height * width, inner, outer), weights.dtype)
    for start in range(0, outer, PIECE):
        for below in range(0, inner, PIECE):
            piece = lines[start : start + PIECE, below : below + PIECE]
            found[:, below : below + PIECE, start : start + PIECE] = piece.transpose(2, 1, 0)
    found.setflags(write=False)
    return found.reshape(height, width, inner, outer)


def _convolution(image: Value, weights: Value, attrs: Attrs, builder: Builder, name: str) -> Value:
    last = attrs.with_(format=NHWC, **{OWN_KERNEL: True})
    return builder.node(CONV2D, (image, weights), last, name).out


def _product(image: Value, weights: Value, builder: Builder, turned: bool) -> Value:
    """Of every point of an image with weights [O, I, 1, 1], of which the image has I (``turned``) or O."""
    *points, channels = image.type.shape
    rows = ops.reshape(Tensor(image, builder), (_count(points), channels))
    matrix = ops.reshape(Tensor(weights, builder), weights.type.shape[:2])
    found = ops.matmul(rows, matrix, False, turned)
    return ops.reshape(found, (*points, found.shape[1])).value


def _by_input(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    dy, weights = args
    if has_phases(node):
        return (of_phases(node, dy, weights, builder),)
    if windows_of(node) is Windows.POINTS:
        return (_product(dy, weights, builder, turned=False),)
    count, inner, height, width = (int(str(dim)) for dim in weights.type.shape)
    by_place = ops.reshape(ops.transpose(Tensor(weights, builder), (2, 3, 0, 1)), (height * width, count, inner))
    back = ops.gather(by_place, np.arange(height * width - 1, -1, -1, dtype=np.int32))
    turned = ops.reshape(back, (height, width, count, inner)).value
    attrs = node.attrs.without("input_size").with_(pad=_margins(node))
    return (_convolution(dy, turned, attrs, builder, node.name),)


def _by_filter(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    dy, x = (Tensor(value, builder) for value in args)
    size = node.attrs.dims("filter_size")
    if windows_of(node) is Windows.POINTS:
        rows, images = (ops.reshape(each, (_count(each.shape[:-1]), each.shape[-1])) for each in (dy, x))
        return (ops.reshape(ops.matmul(rows, images, True, False), size).value,)
    if _count((*size[1:], *dy.shape[:-1])) * FLOAT.itemsize <= MOST_PATCHES:
        return (_of_patches(dy, x, size, node.attrs).value,)
    attrs = node.attrs.without("filter_size").with_(
        stride=node.attrs.ints("dilation", (1, 1)), dilation=node.attrs.ints("stride", (1, 1))
    )
    channels, places = ops.transpose(x, (3, 1, 2, 0)), ops.transpose(dy, (1, 2, 0, 3))
    found = Tensor(_convolution(channels.value, places.value, attrs, builder, node.name), builder)
    return (ops.transpose(found[:, : size[2], : size[3], :], (3, 0, 1, 2)).value,)


def filter_by_tiles(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    """The form of a gradient of windows, a ``node`` that :func:`is_by_tiles`, as the pass winograd takes it, by a ``builder``;
    ``args`` are dy and the image in NHWC."""
    count, channels, *window = node.attrs.dims("filter_size")
    attrs = node.attrs.with_(format=NHWC, filter_size=(*window, channels, count), **{OWN_KERNEL: True})
    found = builder.node(CONV2D_BACKPROP_FILTER, tuple(args), attrs, node.name).out
    return (builder.emit(TRANSPOSE, found, perm=(3, 2, 0, 1)),)


def is_by_tiles(node: Node) -> bool:
    """Whether the gradient of windows, a ``node`` in NCHW of known shapes, takes no longer from tiles of 4 x 4 pixels.

    Its windows are of 3 x 3 pixels side by side, and a model of both ways says so.
    """
    size, sides = node.attrs.dims("filter_size"), [int(str(side)) for side in node.args[0].type.shape[2:]]
    steps = {*node.attrs.ints("stride", (1, 1)), *node.attrs.ints("dilation", (1, 1)), node.attrs.int("group", 1)}
    if size[2:] != (WINDOW, WINDOW) or steps != {1}:
        return False
    tiles = PLACES * _count((node.args[0].type.shape[0], *(tiles_along(side, 1) for side in sides)))
    fits = tiles * max(int(str(dim)) for dim in size[:2]) * FLOAT.itemsize <= MOST_PATCHES
    return fits and gradient_cost(node).by_tiles


def _of_patches(dy: Tensor, x: Tensor, size: Shape, attrs: Attrs) -> Tensor:
    """The sum over all places of a window's elements times ``dy``: a product, whose rows are what elements of windows saw."""
    (top, bottom, left, right), (down, across) = attrs.ints("pad", (0, 0, 0, 0)), attrs.ints("dilation", (1, 1))
    (below, beside), (rows, columns) = attrs.ints("stride", (1, 1)), (int(str(n)) for n in dy.shape[1:3])
    padded = _margin(_margin(x, 1, (top, bottom)), 2, (left, right))
    image = ops.transpose(padded, (3, 0, 1, 2))
    height, width = (int(str(n)) for n in size[2:])
    seen = [
        image[:, :, i : i + below * (rows - 1) + 1 : below, j : j + beside * (columns - 1) + 1 : beside]
        for i in range(0, height * down, down)
        for j in range(0, width * across, across)
    ]
    points = _count(dy.shape[:-1])
    patches = ops.reshape(
        ops.concat([ops.reshape(each, (1, *each.shape)) for each in seen], 0), (_count(size[1:]), points)
    )
    found = ops.matmul(patches, ops.reshape(dy, (points, dy.shape[-1])), False, False)
    return ops.transpose(ops.reshape(found, (height, width, size[1], size[0])), (3, 2, 0, 1))


def _margin(x: Tensor, axis: int, sides: tuple[int, int]) -> Tensor:
    """With so many zeros before and behind along an axis: joined pieces are a kernel, and an operator Pad may be none."""
    shape = [int(str(extent)) for extent in x.shape]
    zeros = [np.zeros((*shape[:axis], side, *shape[axis + 1 :]), FLOAT.numpy) for side in sides]
    parts = [each for each in (zeros[0], x, zeros[1]) if each.shape[axis]]
    return ops.concat(parts, axis) if len(parts) > 1 else x


def _count(dims: Sequence[object]) -> int:
    return prod(int(str(dim)) for dim in dims)


def _patches(node: Node, image: Value, builder: Builder) -> Value:
    """Windows that lie side by side, each as one row."""
    (count, rows, columns), (_, channels, *_) = _places(node.out.type.shape), node.args[0].type.shape
    height, width = node.attrs.ints("stride")
    parts = builder.emit(RESHAPE, image, shape=(count, rows, height, columns, width, channels))
    beside = builder.emit(TRANSPOSE, parts, perm=(0, 1, 3, 2, 4, 5))
    return builder.emit(RESHAPE, beside, shape=(count, rows, columns, channels * (height * width)))


def _places(shape: Shape) -> Shape:
    return (shape[0], *shape[2:])


def images_of(node: Node) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """The operands and results of a ``node``, a convolution or a gradient, that are images, not weights."""
    return (node.args, ()) if node.op is CONV2D_BACKPROP_FILTER else (node.args[:1], node.outs)


CONVOLVED: Mapping[Operator, Form] = {
    CONV2D: _convolved, CONV2D_BACKPROP_INPUT: _by_input, CONV2D_BACKPROP_FILTER: _by_filter
}  # fmt: skip
