"""Softmax, its logarithm, and their gradients."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ops import Tensor
from kernelgen.tensor.types import Attrs


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


@expander("SoftmaxGrad")
def softmax_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """y * (dy - sum(y * dy))"""
    return y * (dy - ops.reduce_sum(y * dy, attrs.ints("axis", (-1,)), keep_dims=True))


@expander("SoftmaxBackward")
def softmax_backward(dy: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """y * (dy - sum(y * dy))"""
    return y * (dy - ops.reduce_sum(y * dy, attrs.ints("dim", (-1,)), keep_dims=True))


@expander("SoftmaxGradExt")
def softmax_grad_ext(dy: Tensor, y: Tensor, scale: Tensor, *, attrs: Attrs) -> Tensor:
    """(dy - sum(dy * y)) * y * scale"""
    return (dy - ops.reduce_sum(dy * y, attrs.ints("axis", (-1,)), keep_dims=True)) * y * scale


@expander("LogSoftmaxGrad")
def log_softmax_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """dy - exp(y) * sum(dy)"""
    return dy - ops.exp(y) * ops.reduce_sum(dy, attrs.ints("axis", (-1,)), keep_dims=True)
