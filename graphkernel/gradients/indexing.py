"""Gradients of operators that read or write at places which tensors hold."""

from __future__ import annotations

from dataclasses import replace

from graphkernel import ops
from graphkernel.expanders.means import number_of
from graphkernel.gradients.base import Application, Cotangents, gradient
from graphkernel.gradients.shapes import reshaped
from graphkernel.ops import Tensor
from graphkernel.ops.tensor.apply import apply
from kernelgen.tensor.operators.indexing import GATHER, ONE_HOT
from kernelgen.tensor.operators.scatter import GATHER_ND, TENSOR_SCATTER_ADD, UNSORTED_SEGMENT_SUM
from kernelgen.tensor.types import Category, Dim


@gradient(GATHER)
def gather(of: Application) -> Cotangents:
    """UnsortedSegmentSum of dy by the indices"""
    (x, indices), axis = of.operands, of.attrs.int("axis", 0) % of.operands[0].ndim
    if not indices.ndim:  # one slice
        indices, of = ops.expand_dims(indices, 0), replace(of, cotangents=(ops.expand_dims(of.dy, axis),))
    extent, picked = x.shape[axis], range(axis, axis + indices.ndim)
    others = [a for a in range(of.dy.ndim) if a not in picked]
    moved = _transposed(of.dy, [*picked, *others])
    rows = apply(UNSORTED_SEGMENT_SUM, moved, _from_front(indices, extent), num_segments=extent)
    return [_transposed(rows, [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)]), None]


def _transposed(x: Tensor, order: list[int]) -> Tensor:
    return x if order == sorted(order) else ops.transpose(x, order)


def _from_front(indices: Tensor, extent: Dim) -> Tensor:
    """Negative indices, which count from the end, as those that count from the front."""
    if indices.dtype.category is Category.UINT:
        return indices
    known = indices.value.constant
    if known is not None and (known >= 0).all():
        return indices
    last = extent if isinstance(extent, int) else number_of(extent, indices)
    return ops.select(indices < 0, indices + last, indices)


@gradient(ONE_HOT)
def one_hot(of: Application) -> Cotangents:
    """The sum of dy where the on value is, and where the off value is"""
    indices, on, off = of.operands
    one, zero = (Tensor(on.builder.constant(value, on.dtype), on.builder) for value in (1, 0))
    hot = apply(ONE_HOT, indices, one, zero, **of.attrs)
    total, there = ops.reduce_sum(of.dy), ops.reduce_sum(of.dy * hot)
    return [None, reshaped(there, on.shape), reshaped(total - there, off.shape)]


@gradient(GATHER_ND)
def gather_nd(of: Application) -> Cotangents:
    """TensorScatterAdd of dy to zeros"""
    x, indices = of.operands
    return [apply(TENSOR_SCATTER_ADD, ops.zeros_like(x), indices, of.dy), None]


@gradient(TENSOR_SCATTER_ADD)
def tensor_scatter_add(of: Application) -> Cotangents:
    """dy; GatherNd of dy"""
    return [of.dy, None, apply(GATHER_ND, of.dy, of.operands[1])]


@gradient(UNSORTED_SEGMENT_SUM)
def unsorted_segment_sum(of: Application) -> Cotangents:
    """GatherNd of dy by the ids, which reads 0 where an id is out of range"""
    _, ids = of.operands
    return [apply(GATHER_ND, of.dy, ops.expand_dims(ids, -1)), None]


def rows_at(x: Tensor, indices: Tensor) -> Tensor:
    """The slices of the first axis at indices that are in range."""
    return apply(GATHER, x, indices, axis=0)
