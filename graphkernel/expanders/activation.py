"""Activations."""

from __future__ import annotations

import math

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ir.types import Attrs
from graphkernel.ops import Tensor
from graphkernel.ops.activation import FAST_GELU_SCALE, GELU_CUBIC, GELU_SCALE


@expander("Square", wide=False)
def square(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x * x"""
    return x * x


@expander("SquaredDifference")
def squared_difference(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """(x - y) * (x - y)"""
    difference = x - y
    return difference * difference


@expander("AddN")
def add_n(*operands: Tensor, attrs: Attrs) -> Tensor:
    """x0 + x1 + ..., from left to right"""
    total, *rest = operands
    for x in rest:
        total = total + x
    return total


@expander("ReLU", wide=False)
def relu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """max(x, 0)"""
    return ops.maximum(x, 0)


@expander("ReLU6", wide=False)
def relu6(x: Tensor, *, attrs: Attrs) -> Tensor:
    """min(max(x, 0), 6)"""
    return clipped(x, 0, 6)


@expander("LeakyReLU")
def leaky_relu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x where x >= 0, else alpha * x"""
    return ops.select(x < 0, attrs.float("alpha", 0.01) * x, x)


@expander("Elu")
def elu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x where x >= 0, else alpha * (exp(x) - 1)"""
    return ops.select(x < 0, attrs.float("alpha", 1.0) * ops.expm1(ops.minimum(x, 0)), x)


@expander("Sigmoid")
def sigmoid(x: Tensor, *, attrs: Attrs) -> Tensor:
    """1 / (1 + exp(-x))"""
    return logistic(x)


@expander("SiLU")
def silu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x / (1 + exp(-x))"""
    return x / (1.0 + ops.exp(-x))


@expander("HSigmoid")
def hsigmoid(x: Tensor, *, attrs: Attrs) -> Tensor:
    """min(max(x / 6 + 0.5, 0), 1)"""
    return clipped(x / 6.0 + 0.5, 0, 1)


@expander("HSwish")
def hswish(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x * min(max(x + 3, 0), 6) / 6"""
    return x * clipped(x + 3.0, 0, 6) / 6.0


@expander("GeLU")
def gelu_of_mindspore(x: Tensor, *, attrs: Attrs) -> Tensor:
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"""
    return 0.5 * x * (1.0 + tanh_of_gelu(x))


@expander("Gelu")
def gelu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """0.5 * x * (1 + erf(x / sqrt(2))), or the tanh form when the attribute asks for it"""
    if attrs.str("approximate", "none") == "tanh":
        return 0.5 * x * (1.0 + tanh_of_gelu(x))
    return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))


@expander("FastGeLU")
def fast_gelu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x / (1 + exp(-1.702 * x))"""
    return x / (1.0 + ops.exp(-FAST_GELU_SCALE * x))


@expander("Softplus")
def softplus(x: Tensor, *, attrs: Attrs) -> Tensor:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow"""
    return ops.maximum(x, 0) + ops.log1p(ops.exp(-abs(x)))


@expander("Softsign")
def softsign(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x / (1 + |x|)"""
    return x / (1.0 + abs(x))


@expander("Erfc")
def erfc(x: Tensor, *, attrs: Attrs) -> Tensor:
    """1 - erf(x); accurate to the rounding of 1, as MindSpore's"""
    return 1.0 - ops.erf(x)


def logistic(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)); an overflowing exp gives the correct 0."""
    return 1.0 / (1.0 + ops.exp(-x))


def tanh_of_gelu(x: Tensor) -> Tensor:
    """tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))"""
    return ops.tanh(GELU_SCALE * (x + GELU_CUBIC * x * x * x))


def clipped(x: Tensor, low: float, high: float) -> Tensor:
    """min(max(x, low), high)"""
    return ops.minimum(ops.maximum(x, low), high)
