"""The gradients of convolutions as ONNX nodes: a ConvTranspose, and a Conv in which images and channels change places."""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel.onnx_writing.writer import Unwritable, Write, Writer
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_FILTER, CONV2D_BACKPROP_INPUT
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.nn import is_nhwc
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.types import Shape

TURNED = (1, 0, 2, 3)


def pads(node: Node) -> tuple[int, ...]:
    """The padding of a ``node`` with windows in ONNX's order."""
    top, bottom, left, right = node.attrs.ints("pad", (0, 0, 0, 0))
    return (top, left, bottom, right)


def _static(shape: Shape) -> tuple[int, ...]:
    known = tuple(dim for dim in shape if isinstance(dim, int))
    if len(known) != len(shape):
        raise Unwritable("the gradient of a convolution of open extents")
    return known


def _by_input(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Windows that end before the image does leave elements that no ``dy`` reaches: ``output_padding``."""
    extents, counts, kernel = (_static(of.type.shape[2:]) for of in (node.out, *node.args))
    strides, dilations, margins = node.attrs.ints("stride", (1, 1)), node.attrs.ints("dilation", (1, 1)), pads(node)
    parts = zip(extents, counts, kernel, strides, dilations, margins[:2], margins[2:], strict=True)
    left = [n - (count - 1) * s - d * (k - 1) - 1 + before + after for n, count, k, s, d, before, after in parts]
    if any(over >= max(s, d) for over, s, d in zip(left, strides, dilations, strict=True)):
        raise Unwritable("a convolution whose windows leave out whole steps of the image")
    return writer.emit(
        "ConvTranspose", *x, result=result, strides=strides, dilations=dilations, pads=margins, output_padding=left,
        group=node.attrs.int("group", 1),
    )  # fmt: skip


def _by_filter(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """The gradient of HWIO, of images in NHWC, from their planes."""
    shape, ends, turned = _static(node.args[1].type.shape), _static(node.out.type.shape[2:]), TURNED
    if is_nhwc(node.attrs):
        x = tuple(writer.emit(TRANSPOSE.onnx, name, perm=(0, 3, 1, 2)) for name in x)
        shape, ends, turned = (shape[0], shape[3], *shape[1:3]), _static(node.out.type.shape[:2]), (2, 3, 0, 1)
    group, (count, channels, *extents) = node.attrs.int("group", 1), shape
    places = writer.emit(TRANSPOSE.onnx, x[0], perm=TURNED)
    if group == 1:
        image = writer.emit(TRANSPOSE.onnx, x[1], perm=TURNED)
    else:
        parts = writer.emit(RESHAPE.name, x[1], writer.ints((count, group, channels // group, *extents)))
        moved = writer.emit(TRANSPOSE.onnx, parts, perm=(2, 1, 0, 3, 4))
        image = writer.emit(RESHAPE.name, moved, writer.ints((channels // group, group * count, *extents)))
    strides, dilations = node.attrs.ints("dilation", (1, 1)), node.attrs.ints("stride", (1, 1))
    found = writer.emit(
        "Conv", image, places, strides=strides, dilations=dilations, pads=pads(node), group=group
    )  # fmt: skip
    whole = writer.emit("Slice", found, writer.ints((0, 0)), writer.ints(ends), writer.ints((2, 3)))
    return writer.emit(TRANSPOSE.onnx, whole, result=result, perm=turned)


WRITERS: Mapping[Operator, Write] = {CONV2D_BACKPROP_INPUT: _by_input, CONV2D_BACKPROP_FILTER: _by_filter}
WHOLE_MODELS_ONLY: Mapping[Operator, Write] = {}
