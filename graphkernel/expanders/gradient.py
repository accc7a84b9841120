"""Gradients of activations and powers."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.activation import logistic, tanh_of_gelu
from graphkernel.expanders.base import expander
from graphkernel.ir.types import Attrs
from graphkernel.ops import Tensor
from graphkernel.ops.activation import GELU_CUBIC, GELU_SCALE


@expander("TanhGrad")
def tanh_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """dy * (1 - y * y)"""
    return dy * (1.0 - y * y)


@expander("SigmoidGrad")
def sigmoid_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """(1 - y) * y * dy"""
    return (1.0 - y) * y * dy


@expander("ReluGrad", wide=False)
def relu_grad(dy: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """dy where y > 0, else 0"""
    return ops.select(y > 0, dy, 0)


@expander("SqrtGrad")
def sqrt_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """dy / (2 * y)"""
    return dy / (2.0 * y)


@expander("RsqrtGrad")
def rsqrt_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """-0.5 * y^3 * dy"""
    return -0.5 * y * y * y * dy


@expander("SiLUGrad")
def silu_grad(dy: Tensor, x: Tensor, *, attrs: Attrs) -> Tensor:
    """dy * s * (1 + x * (1 - s)) with s = sigmoid(x)"""
    s = logistic(x)
    return dy * s * (1.0 + x * (1.0 - s))


@expander("SoftplusGrad")
def softplus_grad(dy: Tensor, x: Tensor, *, attrs: Attrs) -> Tensor:
    """dy / (1 + exp(-x))"""
    return dy / (1.0 + ops.exp(-x))


@expander("GeLUGrad")
def gelu_grad(dy: Tensor, x: Tensor, *unused: Tensor, attrs: Attrs) -> Tensor:
    """dy * (0.5 * (1 + t) + 0.5 * x * (1 - t^2) * c * (1 + 3 * 0.044715 * x^2)), t the tanh of GeLU, c = sqrt(2 / pi)"""
    t = tanh_of_gelu(x)
    inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBIC * x * x)
    return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner)
