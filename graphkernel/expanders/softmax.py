"""Softmax, its logarithm, and their gradients."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ops import Tensor
from graphkernel.ops.composite import normalize, softmax_gradients
from kernelgen.tensor.types import Attrs


@expander(normalize.SOFTMAX)
def softmax(x: Tensor, *, attrs: Attrs) -> Tensor:
    """e / sum(e) with e = exp(x - max(x))"""
    axes = attrs.ints("axis", (-1,))
    e = ops.exp(x - ops.reduce_max(x, axes, keep_dims=True))
    return e / ops.reduce_sum(e, axes, keep_dims=True)


@expander(normalize.LOG_SOFTMAX)
def log_softmax(x: Tensor, *, attrs: Attrs) -> Tensor:
    """s - log(sum(exp(s))) with s = x - max(x)"""
    axes = attrs.ints("axis", (-1,))
    shifted = x - ops.reduce_max(x, axes, keep_dims=True)
    return shifted - ops.log(ops.reduce_sum(ops.exp(shifted), axes, keep_dims=True))


@expander(softmax_gradients.SOFTMAX_GRAD)
def softmax_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """y * (dy - sum(y * dy))"""
    return y * (dy - ops.reduce_sum(y * dy, attrs.ints("axis", (-1,)), keep_dims=True))


@expander(softmax_gradients.SOFTMAX_BACKWARD)
def softmax_backward(dy: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """y * (dy - sum(y * dy))"""
    return y * (dy - ops.reduce_sum(y * dy, attrs.ints("dim", (-1,)), keep_dims=True))


@expander(softmax_gradients.SOFTMAX_GRAD_EXT)
def softmax_grad_ext(dy: Tensor, y: Tensor, scale: Tensor, *, attrs: Attrs) -> Tensor:
    """(dy - sum(dy * y)) * y * scale"""
    return (dy - ops.reduce_sum(dy * y, attrs.ints("axis", (-1,)), keep_dims=True)) * y * scale


@expander(softmax_gradients.LOG_SOFTMAX_GRAD)
def log_softmax_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """dy - exp(y) * sum(dy)"""
    return dy - ops.exp(y) * ops.reduce_sum(dy, attrs.ints("axis", (-1,)), keep_dims=True)
