"""Gradients of activations, by MindSpore's gradient operators where there is one; and the second derivatives of those.

At a corner the slope is that of the left side, as in torch: 0 for ``ReLU``, ``alpha`` for ``LeakyReLU``. The expansions of
the gradients of smooth activations are written with ``abs``, which has a corner where the activation has none: so their
rules are written out.
"""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.activation import gate_of_gelu
from graphkernel.expanders.gradient import slope_of_gate
from graphkernel.gradients.base import Application, Cotangents, gradient, pointwise
from graphkernel.ops import Tensor
from graphkernel.ops.composite import activation, activation_ext, gradients
from graphkernel.ops.composite.activation import FAST_GELU_SCALE, GELU_CUBIC, GELU_SCALE
from graphkernel.ops.composite.gradients import FAST_GELU_GRAD, FAST_GELU_GRAD_LOWER
from graphkernel.ops.tensor.apply import apply


def _hard_sigmoid(dy: Tensor, y: Tensor, x: Tensor) -> Tensor:
    return ops.select((x > -3) & (x < 3), dy / 6.0, 0)


def _hard_swish(dy: Tensor, y: Tensor, x: Tensor) -> Tensor:
    return ops.select(x <= -3, 0, ops.select(x < 3, dy * (x / 3.0 + 0.5), dy))


def _soft_sign(dy: Tensor, y: Tensor, x: Tensor) -> Tensor:
    root = ops.abs(x) + 1.0
    return dy / (root * root)


SQUARE = pointwise(activation.SQUARE, lambda dy, y, x: dy * (x + x))
SIGMOID = pointwise(activation.SIGMOID, lambda dy, y, x: ops.sigmoid_grad(y, dy))
RELU = pointwise(activation.RELU, lambda dy, y, x: ops.relu_grad(dy, y))
RELU6 = pointwise(activation.RELU6, lambda dy, y, x: ops.select((x > 0) & (x < 6), dy, 0))
SILU = pointwise(activation.SILU, lambda dy, y, x: ops.silu_grad(dy, x))
GELU_TANH = pointwise(activation.GELU_TANH, lambda dy, y, x: ops.gelu_grad(dy, x, y))
FAST_GELU = pointwise(activation.FAST_GELU, lambda dy, y, x: apply(FAST_GELU_GRAD, dy, x))
FAST_GELU_LOWER = pointwise(activation_ext.FAST_GELU_LOWER, lambda dy, y, x: apply(FAST_GELU_GRAD_LOWER, dy, x))
SOFTPLUS = pointwise(activation.SOFTPLUS, lambda dy, y, x: ops.softplus_grad(dy, x))
SOFTSIGN = pointwise(activation.SOFTSIGN, _soft_sign)
HSIGMOID = pointwise(activation.HSIGMOID, _hard_sigmoid)
HSWISH = pointwise(activation.HSWISH, _hard_swish)
SQUARED_DIFFERENCE = pointwise(
    activation.SQUARED_DIFFERENCE, lambda dy, z, x, y: dy * 2.0 * (x - y), lambda dy, z, x, y: dy * 2.0 * (y - x)
)


@gradient(activation.GELU)
def gelu(of: Application) -> Cotangents:
    """GeLUGrad for the tanh form, else dy * (Phi(x) + x * phi(x)) with the normal distribution and its density"""
    (x,) = of.operands
    if of.attrs.str("approximate", "none") == "tanh":
        return [ops.gelu_grad(of.dy, x, of.results[0])]
    distribution = 0.5 * ops.erfc(x * -(0.5**0.5))
    density = 0.5 * GELU_SCALE * ops.exp(-0.5 * x * x)
    return [of.dy * (distribution + x * density)]


def _leaky(of: Application, slope: float) -> Cotangents:
    return [ops.select(of.operands[0] > 0, of.dy, of.dy * slope)]


@gradient(activation.LEAKY_RELU)
def leaky_relu(of: Application) -> Cotangents:
    """dy where x > 0, else alpha * dy"""
    return _leaky(of, of.attrs.float("alpha", 0.01))


@gradient(activation_ext.LEAKY_RELU_EXT)
def leaky_relu_ext(of: Application) -> Cotangents:
    """dy where x > 0, else negative_slope * dy"""
    return _leaky(of, of.attrs.float("negative_slope", 0.01))


def _elu(of: Application) -> Cotangents:
    """dy where x > 0, else alpha * exp(x) * dy"""
    (x,) = of.operands
    slope = of.attrs.float("alpha", 1.0) * ops.exp(ops.minimum(x, 0))
    return [ops.select(x > 0, of.dy, of.dy * slope)]


ELU = gradient(activation.ELU)(_elu)
ELU_EXT = gradient(activation_ext.ELU_EXT)(_elu)


@gradient(activation_ext.HSHRINK)
def hard_shrink(of: Application) -> Cotangents:
    """dy where |x| > lambd, else 0"""
    return [ops.select(ops.abs(of.operands[0]) > of.attrs.float("lambd", 0.5), of.dy, 0)]


@gradient(activation_ext.SOFTPLUS_EXT)
def softplus_ext(of: Application) -> Cotangents:
    """SoftplusGradExt"""
    beta, threshold = of.attrs.float("beta", 1.0), of.attrs.float("threshold", 20.0)
    return [ops.softplus_grad_ext(of.dy, of.operands[0], beta, threshold)]


def _bend(x: Tensor, gate: Tensor, slope: Tensor | float, bend: Tensor | float) -> Tensor:
    """The second derivative of x * sigmoid(gate), from the first two derivatives of the gate."""
    s = ops.sigmoid(gate)
    of_sigmoid = s * (1.0 - s)
    return of_sigmoid * (2.0 * slope + x * ((1.0 - 2.0 * s) * slope * slope + bend))


def _bend_of_gelu(x: Tensor) -> Tensor:
    return _bend(x, gate_of_gelu(x), slope_of_gate(x), 12.0 * GELU_SCALE * GELU_CUBIC * x)


def _bend_of_fast_gelu(x: Tensor) -> Tensor:
    return _bend(x, FAST_GELU_SCALE * x, FAST_GELU_SCALE, 0.0)


SILU_GRAD = pointwise(
    activation.SILU_GRAD, lambda g, r, dy, x: ops.silu_grad(g, x), lambda g, r, dy, x: g * dy * _bend(x, x, 1.0, 0.0)
)
FAST_GELU_SLOPE = pointwise(
    FAST_GELU_GRAD,
    lambda g, r, dy, x: apply(FAST_GELU_GRAD, g, x),
    lambda g, r, dy, x: g * dy * _bend_of_fast_gelu(x),
)
FAST_GELU_SLOPE_LOWER = pointwise(
    FAST_GELU_GRAD_LOWER,
    lambda g, r, dy, x: apply(FAST_GELU_GRAD_LOWER, g, x),
    lambda g, r, dy, x: g * dy * _bend_of_fast_gelu(x),
)
SOFTPLUS_GRAD = pointwise(
    activation.SOFTPLUS_GRAD,
    lambda g, r, dy, x: ops.softplus_grad(g, x),
    lambda g, r, dy, x: ops.sigmoid_grad(ops.sigmoid(x), g * dy),
)


@gradient(activation.GELU_GRAD)
def gelu_grad(of: Application) -> Cotangents:
    """GeLUGrad; dy * the second derivative of GeLU"""
    dy, x, *result = of.operands
    return [ops.gelu_grad(of.dy, x), of.dy * dy * _bend_of_gelu(x), *[None] * len(result)]


@gradient(gradients.SOFTPLUS_GRAD_EXT)
def softplus_grad_ext(of: Application) -> Cotangents:
    """SoftplusGradExt; beta * dy * SigmoidGrad where beta * x <= threshold, else 0"""
    (dy, x), beta, threshold = of.operands, of.attrs.float("beta", 1.0), of.attrs.float("threshold", 20.0)
    bend = ops.sigmoid_grad(ops.sigmoid(beta * x), of.dy * dy * beta)
    return [ops.softplus_grad_ext(of.dy, x, beta, threshold), ops.select(beta * x > threshold, 0, bend)]
