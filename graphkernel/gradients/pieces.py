"""Gradients of operators that cut tensors and pad them; ``cut_out`` and ``put_back`` are each other's gradient."""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel import ops
from graphkernel.gradients.base import Application, Cotangents, gradient
from graphkernel.ops import Tensor
from graphkernel.ops.composite import split_sizes
from graphkernel.ops.tensor.apply import apply
from kernelgen.tensor.operators import padding, pieces
from kernelgen.tensor.operators.creation import FILL_V2
from kernelgen.tensor.operators.pieces import CONCAT, STRIDED_SLICE
from kernelgen.tensor.types import Dim, Shape, Sym


def cut_out(x: Tensor, begin: Sequence[Dim], shape: Shape) -> Tensor:
    """The elements of ``x`` from ``begin`` on that make this ``shape``."""
    if x.shape == shape:
        return x
    end = tuple(first + extent for first, extent in zip(begin, shape, strict=True))
    return apply(STRIDED_SLICE, x, begin=tuple(begin), end=end, strides=(1,) * x.ndim)


def put_back(x: Tensor, begin: Sequence[Dim], shape: Shape) -> Tensor:
    """Zeros of this shape, with x from ``begin`` on."""
    after = [whole - first - own for first, own, whole in zip(begin, x.shape, shape, strict=True)]
    margins = tuple(zip(begin, after, strict=True))
    if not any(isinstance(amount, Sym) for pair in margins for amount in pair):
        known = [(int(str(low)), int(str(high))) for low, high in margins]
        return ops.pad(x, known) if any(map(any, known)) else x
    for axis, pair in enumerate(margins):
        x = _joined(x, axis, *pair)
    return x


def _joined(x: Tensor, axis: int, before: Dim, after: Dim) -> Tensor:
    """With zeros before and after an axis, where a Pad cannot say how many."""
    zero = Tensor(x.builder.constant(0, x.dtype), x.builder)
    around = [
        None if amount == 0 else apply(FILL_V2, zero, shape=(*x.shape[:axis], amount, *x.shape[axis + 1 :]))
        for amount in (before, after)
    ]
    parts = [part for part in (around[0], x, around[1]) if part is not None]
    return apply(CONCAT, *parts, axis=axis) if len(parts) > 1 else x


def _joined_parts(of: Application) -> Cotangents:
    """The cotangents of the parts, joined"""
    axis = of.attrs.int("axis", 0)
    parts = [of.cotangent(place) for place in range(len(of.results))]
    return [apply(CONCAT, *parts, axis=axis) if len(parts) > 1 else parts[0]]


SPLIT = gradient(pieces.SPLIT)(_joined_parts)
SPLIT_WITH_SIZE = gradient(split_sizes.SPLIT_WITH_SIZE)(_joined_parts)


@gradient(pieces.SLICE)
def slice_(of: Application) -> Cotangents:
    """Zeros around dy"""
    return [put_back(of.dy, of.attrs.ints("begin"), of.operands[0].shape)]


@gradient(STRIDED_SLICE)
def strided_slice(of: Application) -> Cotangents:
    """Zeros around dy, and between its elements where the slice left some out"""
    (x,), dy = of.operands, of.dy
    begins, strides = list(of.attrs.dims("begin")), of.attrs.ints("strides")
    if 0 in dy.shape:
        return [ops.zeros_like(x)]
    for axis, stride in enumerate(strides):
        if stride != 1:
            dy, begins[axis] = _ascending(dy, axis, begins[axis], stride)
            dy = _spaced(dy, axis, abs(stride))
    return [put_back(dy, begins, x.shape)]


def _ascending(dy: Tensor, axis: int, begin: Dim, stride: int) -> tuple[Tensor, Dim]:
    """The elements of an axis in the order of the operand, and where the first of them was."""
    if stride > 0:
        return dy, begin
    last = dy.shape[axis] - 1
    turned = [(last, -1, -1) if a == axis else (0, extent, 1) for a, extent in enumerate(dy.shape)]
    begins, ends, strides = zip(*turned, strict=True)
    return apply(STRIDED_SLICE, dy, begin=begins, end=ends, strides=strides), begin + last * stride


def _spaced(dy: Tensor, axis: int, stride: int) -> Tensor:
    """With ``stride - 1`` zeros between the elements of an axis."""
    if stride == 1:
        return dy
    before, extent, behind = dy.shape[:axis], dy.shape[axis], dy.shape[axis + 1 :]
    apart = ops.reshape(dy, (*before, extent, 1, *behind))
    padded = ops.pad(apart, [(0, stride - 1 if a == axis + 1 else 0) for a in range(apart.ndim)])
    rows = ops.reshape(padded, (*before, extent * stride, *behind))
    return cut_out(rows, (0,) * rows.ndim, (*before, (extent - 1) * stride + 1, *behind))


@gradient(pieces.PAD)
def pad(of: Application) -> Cotangents:
    """dy without the margins"""
    return [cut_out(of.dy, of.attrs.ints("paddings")[0::2], of.operands[0].shape)]


@gradient(padding.PAD_AKG)
def pad_to_tiles(of: Application) -> Cotangents:
    """dy without the margins"""
    return [cut_out(of.dy, of.attrs.ints("head"), of.operands[0].shape)]


@gradient(padding.UNPAD_AKG)
def without_tail(of: Application) -> Cotangents:
    """Zeros behind dy"""
    return [put_back(of.dy, (0,) * of.dy.ndim, of.operands[0].shape)]


@gradient(CONCAT)
def concat(of: Application) -> Cotangents:
    """The part of dy that each operand became"""
    axis = of.attrs.int("axis") % of.dy.ndim
    found: list[Tensor | None] = []
    begin: Shape = (0,) * of.dy.ndim
    for operand, wanted in zip(of.operands, of.wanted, strict=True):
        found.append(cut_out(of.dy, begin, operand.shape) if wanted else None)
        begin = (*begin[:axis], begin[axis] + operand.shape[axis], *begin[axis + 1 :])
    return found
