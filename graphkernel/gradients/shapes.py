"""Gradients of operators that give elements another place or repeat them."""

from __future__ import annotations

import numpy as np

from graphkernel import ops
from graphkernel.expanders.means import summed_to
from graphkernel.gradients.base import Application, Cotangents, gradient
from graphkernel.ops import Tensor
from graphkernel.ops.fused import fused_shape
from graphkernel.ops.tensor.apply import apply
from kernelgen.tensor.operators import creation
from kernelgen.tensor.operators import shape as basic
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import Shape


def reshaped(x: Tensor, shape: Shape) -> Tensor:
    """In another shape, all of whose extents are given."""
    return x if x.shape == shape else apply(RESHAPE, x, shape=shape)


def _as_operand(of: Application) -> Cotangents:
    """dy in the operand's shape"""
    x, *others = of.operands
    return [reshaped(of.dy, x.shape), *[None] * len(others)]


RESHAPE_BACK = gradient(RESHAPE)(_as_operand)
EXPAND_DIMS = gradient(basic.EXPAND_DIMS)(_as_operand)
SQUEEZE = gradient(basic.SQUEEZE)(_as_operand)
FLATTEN = gradient(basic.FLATTEN)(_as_operand)
DYNAMIC_RESHAPE = gradient(fused_shape.DYNAMIC_RESHAPE)(_as_operand)
RESHAPE_EXT = gradient(fused_shape.RESHAPE_EXT)(_as_operand)


@gradient(basic.TRANSPOSE)
def transpose(of: Application) -> Cotangents:
    """dy transposed back"""
    rank = of.operands[0].ndim
    order = np.argsort([axis % rank for axis in of.attrs.ints("perm")])
    return [ops.transpose(of.dy, tuple(int(axis) for axis in order)) if rank else of.dy]


@gradient(basic.BROADCAST_TO)
def broadcast_to(of: Application) -> Cotangents:
    """dy summed to the operand's shape"""
    return [summed_to(of.dy, of.operands[0].shape)]


@gradient(creation.FILL_V2)
def fill(of: Application) -> Cotangents:
    """The sum of dy"""
    total = ops.reduce_sum(of.dy) if of.dy.ndim else of.dy
    return [reshaped(total, of.operands[0].shape)]


@gradient(basic.TILE)
def tile(of: Application) -> Cotangents:
    """dy summed over the repetitions"""
    (x,), multiples = of.operands, of.attrs.dims("multiples")
    shape = (*[1] * (len(multiples) - x.ndim), *x.shape)
    pairs = [extent for pair in zip(multiples, shape, strict=True) for extent in pair]
    if not pairs:
        return [of.dy]
    return [reshaped(ops.reduce_sum(reshaped(of.dy, tuple(pairs)), tuple(range(0, len(pairs), 2))), x.shape)]


@gradient(creation.REPEAT_INTERLEAVE_INT)
def repeat_interleave(of: Application) -> Cotangents:
    """dy summed over the repetitions"""
    (x,), repeats = of.operands, of.attrs.int("repeats")
    if "dim" not in of.attrs:
        return [reshaped(ops.reduce_sum(reshaped(of.dy, (x.size, repeats)), 1), x.shape)]
    axis = of.attrs.int("dim") % x.ndim
    return [ops.reduce_sum(reshaped(of.dy, (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])), axis + 1)]
