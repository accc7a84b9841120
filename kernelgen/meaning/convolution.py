"""Conv2D and Pool2D. The tensors' format decides (the attribute ``format`` says NCHW even where it is NHWC)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kernelgen.desc import OpDesc
from kernelgen.errors import UnsupportedError
from kernelgen.meaning.algebra import Array
from kernelgen.meaning.matmul import wide_type


def conv2d(operands: Sequence[Array], op: OpDesc) -> Array:
    """Weights are ``[O, kh, kw, C/group]`` for NHWC, ``[O, C/group, kh, kw]`` else; padding has been applied by PadAkg."""
    last = op.inputs[0].format == "NHWC"
    if not last and operands[0].ndim != 4:
        raise UnsupportedError("unsupported-layout", f"Conv2D of {op.inputs[0].format} with rank {operands[0].ndim}")
    image, weights = (x if last else np.moveaxis(x, 1, -1) for x in operands[:2])
    groups = op.attrs.int("group", op.attrs.int("groups", 1))
    parts = zip(np.split(image, groups, -1), np.split(weights, groups, 0), strict=True)
    result = np.concatenate([_convolved(x, w, op) for x, w in parts], axis=-1)
    return result if last else np.moveaxis(result, -1, 1)


def _convolved(image: Array, weights: Array, op: OpDesc) -> Array:
    """Sums one matrix product per kernel element."""
    stride, dilation = op.attrs.ints("stride", (1, 1))[-2:], op.attrs.ints("dilation", (1, 1))[-2:]
    channels, height, width, _ = weights.shape
    rows = (image.shape[1] - (height - 1) * dilation[0] - 1) // stride[0] + 1
    columns = (image.shape[2] - (width - 1) * dilation[1] - 1) // stride[1] + 1
    kind = wide_type(image)
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


def pool2d(operands: Sequence[Array], op: OpDesc) -> Array:
    """NCHW; ``pool_type`` max or avg, ``global``, ``kernel_size``, ``strides``, ``pad`` (top, left, bottom, right).

    An average counts the padding. ``round_mode`` ceil widens the bottom and right so that the last window fits.
    """
    image = np.moveaxis(operands[0], 1, -1)
    is_max = op.attrs.str("pool_type") == "max"
    if op.attrs.bool("global", False):
        pooled = image.max((1, 2), keepdims=True) if is_max else image.mean((1, 2), keepdims=True, dtype=np.float64)
        return np.moveaxis(pooled, -1, 1)
    size, stride = op.attrs.ints("kernel_size"), op.attrs.ints("strides")
    top, left, bottom, right = op.attrs.ints("pad", (0, 0, 0, 0))
    counts = tuple(int(n) for n in op.output.shape[2:4])  # pyright: ignore[reportArgumentType]  # specialised
    bottom = max(bottom, (counts[0] - 1) * stride[0] + size[0] - image.shape[1] - top)
    right = max(right, (counts[1] - 1) * stride[1] + size[1] - image.shape[2] - left)
    padded = np.pad(
        image.astype(np.float64),
        ((0, 0), (top, bottom), (left, right), (0, 0)),
        constant_values=-np.inf if is_max else 0,
    )
    windows = [w for _, w in _windows(padded, (size[0], size[1]), (counts[0], counts[1]), stride, (1, 1))]
    pooled = np.maximum.reduce(windows) if is_max else np.add.reduce(windows) / len(windows)
    return np.moveaxis(pooled, -1, 1)
