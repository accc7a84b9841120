"""Softmax and its logarithm."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ir.types import Attrs
from graphkernel.ops import Tensor


@expander("Softmax")
def softmax(x: Tensor, *, attrs: Attrs) -> Tensor:
    """e / sum(e) with e = exp(x - max(x))"""
    axes = attrs.ints("axis", (-1,))
    e = ops.exp(x - ops.reduce_max(x, axes, keep_dims=True))
    return e / ops.reduce_sum(e, axes, keep_dims=True)


@expander("LogSoftmax")
def log_softmax(x: Tensor, *, attrs: Attrs) -> Tensor:
    """s - log(sum(exp(s))) with s = x - max(x)"""
    axes = attrs.ints("axis", (-1,))
    shifted = x - ops.reduce_max(x, axes, keep_dims=True)
    return shifted - ops.log(ops.reduce_sum(ops.exp(shifted), axes, keep_dims=True))
