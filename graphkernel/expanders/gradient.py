"""Gradients of activations, powers, Maximum and Minimum."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.activation import logistic, tanh_of_gelu
from graphkernel.expanders.base import expander
from graphkernel.expanders.means import summed_to
from graphkernel.ir.types import Attrs
from graphkernel.ops import Tensor
from graphkernel.ops.activation import FAST_GELU_SCALE, GELU_CUBIC, GELU_SCALE


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


@expander("SoftplusGradExt")
def softplus_grad_ext(dy: Tensor, x: Tensor, *, attrs: Attrs) -> Tensor:
    """dy where beta * x > threshold, else dy / (1 + exp(-beta * x))"""
    scaled = attrs.float("beta", 1.0) * x
    return ops.select(scaled > attrs.float("threshold", 20.0), dy, dy / (1.0 + ops.exp(-scaled)))


def gelu_grad_by_exp(dy: Tensor, x: Tensor, *unused: Tensor, attrs: Attrs) -> Tensor:
    """dy * (s + 2 * x * s * (1 - s) * c * (1 + 3 * 0.044715 * x^2)) with s = 1 / (1 + exp(-2 * u)), where tanh(u) is GeLU's"""
    s = logistic(2.0 * GELU_SCALE * (x + GELU_CUBIC * x * x * x))
    return dy * (s + 2.0 * x * s * (1.0 - s) * slope_of_gelu(x))


@expander("GeLUGrad", special={"ascend": gelu_grad_by_exp})
def gelu_grad(dy: Tensor, x: Tensor, *unused: Tensor, attrs: Attrs) -> Tensor:
    """dy * (0.5 * (1 + t) + 0.5 * x * (1 - t^2) * c * (1 + 3 * 0.044715 * x^2)), t the tanh of GeLU, c = sqrt(2 / pi)"""
    t = tanh_of_gelu(x)
    return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope_of_gelu(x))


def slope_of_gelu(x: Tensor) -> Tensor:
    """The derivative of what GeLU takes the tanh of."""
    return GELU_SCALE * (1.0 + 3.0 * GELU_CUBIC * x * x)


def _fast_gelu_grad(dy: Tensor, x: Tensor, *, attrs: Attrs) -> Tensor:
    """dy * (s + 1.702 * x * s * (1 - s)) with s = 1 / (1 + exp(-1.702 * x))"""
    s = logistic(FAST_GELU_SCALE * x)
    return dy * (s + FAST_GELU_SCALE * x * s * (1.0 - s))


FAST_GELU_GRAD = expander("FastGeLUGrad")(_fast_gelu_grad)
FAST_GELU_GRAD_LOWER = expander("FastGeluGrad")(_fast_gelu_grad)


def _extremum_grad(x: Tensor, y: Tensor, dout: Tensor, *, first: Tensor) -> tuple[Tensor, Tensor]:
    dx, dy = ops.select(first, dout, 0), ops.select(first, 0, dout)
    return summed_to(dx, x.shape), summed_to(dy, y.shape)


@expander("MaximumGrad")
def maximum_grad(x: Tensor, y: Tensor, dout: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(dout where x >= y, else 0; 0 there, else dout), each summed to its operand's shape"""
    return _extremum_grad(x, y, dout, first=x >= y)


@expander("MinimumGrad")
def minimum_grad(x: Tensor, y: Tensor, dout: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(dout where x <= y, else 0; 0 there, else dout), each summed to its operand's shape"""
    return _extremum_grad(x, y, dout, first=x <= y)
