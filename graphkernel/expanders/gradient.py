"""Gradients of activations, powers, Maximum and Minimum."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.activation import gate_of_gelu, gated, logistic_and_slope
from graphkernel.expanders.base import expander
from graphkernel.expanders.means import summed_to
from graphkernel.ops import Tensor
from graphkernel.ops.composite import activation, gradients
from graphkernel.ops.composite.activation import FAST_GELU_SCALE, GELU_CUBIC, GELU_SCALE
from kernelgen.tensor.types import Attrs


@expander(activation.TANH_GRAD)
def tanh_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """dy * ((1 - y) * (1 + y))"""
    return dy * ((1.0 - y) * (1.0 + y))


@expander(activation.SIGMOID_GRAD)
def sigmoid_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """(1 - y) * y * dy"""
    return (1.0 - y) * y * dy


@expander(activation.RELU_GRAD, wide=False)
def relu_grad(dy: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """dy where y > 0, else 0"""
    return ops.select(y > 0, dy, 0)


@expander(activation.SQRT_GRAD)
def sqrt_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """dy / (2 * y)"""
    return dy / (2.0 * y)


@expander(activation.RSQRT_GRAD)
def rsqrt_grad(y: Tensor, dy: Tensor, *, attrs: Attrs) -> Tensor:
    """-0.5 * y^3 * dy"""
    return -0.5 * y * y * y * dy


@expander(activation.SILU_GRAD)
def silu_grad(dy: Tensor, x: Tensor, *, attrs: Attrs) -> Tensor:
    """dy * (s + x * s * (1 - s)) with s = sigmoid(x)"""
    s, slope = logistic_and_slope(x)
    return dy * (s + x * slope)


@expander(activation.SOFTPLUS_GRAD)
def softplus_grad(dy: Tensor, x: Tensor, *, attrs: Attrs) -> Tensor:
    """dy * sigmoid(x)"""
    return gated(dy, x)


@expander(gradients.SOFTPLUS_GRAD_EXT)
def softplus_grad_ext(dy: Tensor, x: Tensor, *, attrs: Attrs) -> Tensor:
    """dy where beta * x > threshold, else dy * sigmoid(beta * x)"""
    scaled = attrs.float("beta", 1.0) * x
    return ops.select(scaled > attrs.float("threshold", 20.0), dy, gated(dy, scaled))


@expander(activation.GELU_GRAD)
def gelu_grad(dy: Tensor, x: Tensor, *unused: Tensor, attrs: Attrs) -> Tensor:
    """dy * (s + x * s * (1 - s) * 2 * c * (1 + 3 * 0.044715 * x^2)) with GeLU's sigmoid s and c = sqrt(2 / pi)"""
    s, slope = logistic_and_slope(gate_of_gelu(x))
    return dy * (s + x * slope * slope_of_gate(x))


def slope_of_gate(x: Tensor) -> Tensor:
    """The derivative of what GeLU takes the sigmoid of."""
    return 2.0 * GELU_SCALE * (1.0 + 3.0 * GELU_CUBIC * x * x)


def _fast_gelu_grad(dy: Tensor, x: Tensor, *, attrs: Attrs) -> Tensor:
    """dy * (s + 1.702 * x * s * (1 - s)) with s = sigmoid(1.702 * x)"""
    s, slope = logistic_and_slope(FAST_GELU_SCALE * x)
    return dy * (s + FAST_GELU_SCALE * x * slope)


FAST_GELU_GRAD = expander(gradients.FAST_GELU_GRAD)(_fast_gelu_grad)
FAST_GELU_GRAD_LOWER = expander(gradients.FAST_GELU_GRAD_LOWER)(_fast_gelu_grad)


def _extremum_grad(x: Tensor, y: Tensor, dout: Tensor, *, first: Tensor) -> tuple[Tensor, Tensor]:
    dx, dy = ops.select(first, dout, 0), ops.select(first, 0, dout)
    return summed_to(dx, x.shape), summed_to(dy, y.shape)


@expander(gradients.MAXIMUM_GRAD)
def maximum_grad(x: Tensor, y: Tensor, dout: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(dout where x >= y, else 0; 0 there, else dout), each summed to its operand's shape"""
    return _extremum_grad(x, y, dout, first=x >= y)


@expander(gradients.MINIMUM_GRAD)
def minimum_grad(x: Tensor, y: Tensor, dout: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(dout where x <= y, else 0; 0 there, else dout), each summed to its operand's shape"""
    return _extremum_grad(x, y, dout, first=x <= y)
