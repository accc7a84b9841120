"""Conv2D and Pool2D. The tensors' format decides (the attribute ``format`` says NCHW even where it is NHWC)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kernelgen.composite.window_shapes import is_channels_last, pooled_dims
from kernelgen.semantics.algebra import Array
from kernelgen.semantics.matmul import wide_type
from kernelgen.semantics.shape import result_shape
from kernelgen.tensor.operator import Application


def conv2d(operands: Sequence[Array], node: Application) -> Array:
    """Weights are ``[O, kh, kw, C/group]`` for NHWC, ``[O, C/group, kh, kw]`` else; padding has been applied by PadAkg.

    Images of five dims are NCHWc, ``[N, C/c, H, W, c]`` with weights ``[O/o, C/c, kh, kw, c, o]``: AKG's direct
    convolution on a CPU. ``is_depth_wise`` has weights ``[C/c, 1, kh, kw, 1, c]``. An optional third operand is added.
    Those of a graph in NHWC are ``[kh, kw, C/group, O]``, and ``pad`` is applied here.
    """
    if is_channels_last(node):
        return _grouped(_padded(operands[0], node), np.moveaxis(operands[1], -1, 0), node.attrs.int("group", 1), node)
    if operands[0].ndim == 5:
        result = _blocked_conv2d(operands, node)
    else:
        last = node.args[0].layout == "NHWC"
        image, weights = (x if last else np.moveaxis(x, 1, -1) for x in operands[:2])
        groups = node.attrs.int("group", node.attrs.int("groups", 1))
        result = _grouped(image, weights, groups, node)
        result = result if last else np.moveaxis(result, -1, 1)
    return result if len(operands) == 2 else result + operands[2]


def _padded(image: Array, node: Application) -> Array:
    """An NHWC image with its padding, as large as the windows reach where they are counted."""
    top, bottom, left, right = node.attrs.ints("pad", (0, 0, 0, 0))
    if "places" not in node.attrs:
        return np.pad(image, ((0, 0), (top, bottom), (left, right), (0, 0)))
    parts = (node.attrs.ints("places"), node.args[1].shape[:2], *_strides(node))
    reach = [
        (count - 1) * step + (int(str(size)) - 1) * apart + 1 for count, size, step, apart in zip(*parts, strict=True)
    ]
    tails = [
        max(0, most - extent - head) for most, extent, head in zip(reach, image.shape[1:3], (top, left), strict=True)
    ]
    padded = np.pad(image, ((0, 0), (top, tails[0]), (left, tails[1]), (0, 0)))
    return padded[:, : reach[0], : reach[1]]


def _strides(node: Application) -> tuple[Sequence[int], Sequence[int]]:
    """Strides and dilations of rows and columns: the last two numbers."""
    return node.attrs.ints("stride", (1, 1))[-2:], node.attrs.ints("dilation", (1, 1))[-2:]


def _blocked_conv2d(operands: Sequence[Array], node: Application) -> Array:
    """NCHWc through NHWC and back."""
    image, weights = operands[:2]
    batch, blocks, height, width, block = image.shape
    plain = np.moveaxis(image, 1, 3).reshape(batch, height, width, blocks * block)
    outer, inner, rows, columns, channels, lanes = weights.shape
    kernels = np.transpose(weights, (0, 5, 2, 3, 1, 4)).reshape(outer * lanes, rows, columns, inner * channels)
    groups = blocks * block if node.attrs.bool("is_depth_wise", False) else 1
    result = _grouped(plain, kernels, groups, node)
    return np.moveaxis(result.reshape(*result.shape[:3], outer, lanes), 3, 1)


def _grouped(image: Array, weights: Array, groups: int, node: Application) -> Array:
    """NHWC, every group of output channels from its own group of input channels."""
    parts = zip(np.split(image, groups, -1), np.split(weights, groups, 0), strict=True)
    return np.concatenate([_convolved(x, w, node) for x, w in parts], axis=-1)


def _convolved(image: Array, weights: Array, node: Application) -> Array:
    """Sums one matrix product per kernel element."""
    stride, dilation = _strides(node)
    channels, height, width, _ = weights.shape
    rows = (image.shape[1] - (height - 1) * dilation[0] - 1) // stride[0] + 1
    columns = (image.shape[2] - (width - 1) * dilation[1] - 1) // stride[1] + 1
    kind = wide_type(image) if node.args[0].dtype.is_float else node.out.dtype.numpy
    total = np.zeros((image.shape[0], rows, columns, channels), kind)
    for (y, x), window in _windows(image, (height, width), (rows, columns), stride, dilation):
        total += window.astype(kind) @ weights[:, y, x].astype(kind).T
    return total


def _windows(
    image: Array, size: tuple[int, int], counts: tuple[int, int], stride: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[tuple[int, int], Array]]:
    """For every kernel element the NHWC image elements that it meets."""
    for y, x in np.ndindex(*size):
        top, left = y * dilation[0], x * dilation[1]
        bottom, right = top + (counts[0] - 1) * stride[0] + 1, left + (counts[1] - 1) * stride[1] + 1
        yield (y, x), image[:, top : bottom : stride[0], left : right : stride[1]]


def pool2d(operands: Sequence[Array], node: Application) -> Array:
    """``pool_type`` max or avg, ``global``, ``kernel_size``, ``strides``, ``pad`` (top, left, bottom, right).

    ``data_layout`` (else the tensor's format, else NCHW) says which dims are rows and columns. An average counts the
    padding. ``round_mode`` ceil widens the bottom and right so that the last window fits.
    """
    places = pooled_dims(node)
    image = np.moveaxis(operands[0], places, (-2, -1)).astype(np.float64)
    is_max = node.attrs.str("pool_type") == "max"
    if node.attrs.bool("global", False):
        pooled = image.max((-2, -1), keepdims=True) if is_max else image.mean((-2, -1), keepdims=True)
        return np.moveaxis(pooled, (-2, -1), places)
    size, stride = node.attrs.ints("kernel_size"), node.attrs.ints("strides")
    before = node.attrs.ints("pad", (0, 0, 0, 0))[:2]
    counts = [result_shape(node)[place] for place in places]
    reach = [(counts[d] - 1) * stride[d] + size[d] for d in (0, 1)]
    margins = [(before[d], max(0, reach[d] - image.shape[d - 2] - before[d])) for d in (0, 1)]
    around = [(0, 0)] * (image.ndim - 2) + margins
    padded = np.pad(image, around, constant_values=-np.inf if is_max else 0)
    windows = [
        padded[
            ...,
            y : y + (counts[0] - 1) * stride[0] + 1 : stride[0],
            x : x + (counts[1] - 1) * stride[1] + 1 : stride[1],
        ]
        for y, x in np.ndindex(*size)
    ]
    pooled = np.maximum.reduce(windows) if is_max else np.add.reduce(windows) / len(windows)
    return np.moveaxis(pooled, (-2, -1), places)
