"""Activations."""

from __future__ import annotations

import math

from graphkernel import ops
from graphkernel.expanders.base import Declined, expander
from graphkernel.ops import Tensor
from graphkernel.ops.composite import activation, activation_ext
from graphkernel.ops.composite.activation import FAST_GELU_SCALE, GELU_CUBIC, GELU_SCALE
from kernelgen.tensor.operators import elemwise
from kernelgen.tensor.types import Attrs


@expander(activation.SQUARE, wide=False)
def square(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x * x"""
    return x * x


@expander(activation.SQUARED_DIFFERENCE)
def squared_difference(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """(x - y) * (x - y)"""
    difference = x - y
    return difference * difference


@expander(activation.ADD_N)
def add_n(*operands: Tensor, attrs: Attrs) -> Tensor:
    """x0 + x1 + ..., from left to right"""
    total, *rest = operands
    for x in rest:
        total = total + x
    return total


@expander(activation.RELU, wide=False)
def relu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """max(x, 0)"""
    return ops.maximum(x, 0)


@expander(activation.RELU6, wide=False)
def relu6(x: Tensor, *, attrs: Attrs) -> Tensor:
    """min(max(x, 0), 6)"""
    return clipped(x, 0, 6)


@expander(activation.SIGMOID)
def sigmoid(x: Tensor, *, attrs: Attrs) -> Tensor:
    """e / (1 + e) with e = exp(x); 1 / (1 + exp(-x)) where x >= 0"""
    return logistic(x)


@expander(activation.SILU)
def silu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x * e / (1 + e) with e = exp(x); with exp(-x) alike where x >= 0"""
    return gated(x, x)


@expander(activation.HSIGMOID)
def hsigmoid(x: Tensor, *, attrs: Attrs) -> Tensor:
    """min(max(x + 3, 0), 6) / 6"""
    return clipped(x + 3.0, 0, 6) / 6.0


@expander(activation.HSWISH)
def hswish(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x * min(max((x + 3) * (1 / 6), 0), 1), which is x itself from 3 on"""
    return x * clipped((x + 3.0) * (1.0 / 6.0), 0, 1)


@expander(activation.GELU_TANH)
def gelu_of_mindspore(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3)), which is the tanh form with all digits where it is small"""
    return gated(x, gate_of_gelu(x))


@expander(activation.GELU)
def gelu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """0.5 * x * erfc(-x / sqrt(2)), or the tanh form when the attribute asks for it"""
    if attrs.str("approximate", "none") == "tanh":
        return gated(x, gate_of_gelu(x))
    return 0.5 * x * ops.erfc(x * -math.sqrt(0.5))


def _fast_gelu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x * sigmoid(1.702 * x)"""
    return gated(x, FAST_GELU_SCALE * x)


FAST_GELU = expander(activation.FAST_GELU)(_fast_gelu)
FAST_GELU_LOWER = expander(activation_ext.FAST_GELU_LOWER)(_fast_gelu)


@expander(activation.SOFTSIGN)
def softsign(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x / (1 + |x|)"""
    return x / (1.0 + abs(x))


def logistic(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)) in the form of :func:`gated`."""
    numerator, denominator, _ = _fraction(x)
    return numerator / denominator


def gated(x: Tensor, gate: Tensor) -> Tensor:
    """x * sigmoid(gate). Nothing overflows, so that what is small keeps its digits down to the least number."""
    numerator, denominator, _ = _fraction(gate)
    return x * numerator / denominator


def logistic_and_slope(x: Tensor) -> tuple[Tensor, Tensor]:
    """(s, s * (1 - s)) with s = sigmoid(x), without the difference, which would cancel."""
    numerator, denominator, e = _fraction(x)
    s = numerator / denominator
    return s, e / (denominator * denominator)


def _fraction(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Numerator and denominator of sigmoid(x), and e = exp(-|x|): 1 / (1 + e) where x >= 0, else e / (1 + e)."""
    e = ops.exp(-abs(x))
    return ops.select(x >= 0, 1, e), 1.0 + e, e


def gate_of_gelu(x: Tensor) -> Tensor:
    """x * 2 * sqrt(2 / pi) * (1 + 0.044715 * x^2): 0.5 * (1 + tanh(u)) is sigmoid(2 u)"""
    return x * (2.0 * GELU_SCALE + 2.0 * GELU_SCALE * GELU_CUBIC * (x * x))


def clipped(x: Tensor, low: float, high: float) -> Tensor:
    """min(max(x, low), high)"""
    return ops.minimum(ops.maximum(x, low), high)


def only_float32(x: Tensor) -> Declined | None:
    """A fraction with float32 coefficients is no double precision erf."""
    return Declined("the fraction for erf is accurate to float32 only") if x.dtype.bits > 32 else None


@expander(elemwise.ERFC)
def erfc(x: Tensor, *, attrs: Attrs) -> Declined:
    """Left as it is: kernels compute it with all digits, and 1 - erf(x) has none of those of a small result"""
    return Declined("kernels compute it; 1 - erf(x) would lose the digits of small results")
