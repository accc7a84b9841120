"""Activations."""

from __future__ import annotations

import math

from graphkernel import ops
from graphkernel.expanders.accurate import erf_by_fraction
from graphkernel.expanders.base import Declined, Expansion, expander
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


def gelu_by_exp(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x / (1 + exp(-2 * sqrt(2 / pi) * (x + 0.044715 * x^3))), which is the same without a tanh"""
    return x / (1.0 + ops.exp(-2.0 * GELU_SCALE * (x + GELU_CUBIC * x * x * x)))


@expander("GeLU", special={"ascend": gelu_by_exp})
def gelu_of_mindspore(x: Tensor, *, attrs: Attrs) -> Tensor:
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"""
    return 0.5 * x * (1.0 + tanh_of_gelu(x))


def gelu_without_erf(x: Tensor, *, attrs: Attrs) -> Expansion:
    """The erf by a fraction, the tanh form by exp"""
    if attrs.str("approximate", "none") == "tanh":
        return gelu_by_exp(x, attrs=attrs)
    return only_float32(x) or 0.5 * x * (1.0 + erf_by_fraction(x * math.sqrt(0.5)))


@expander("Gelu", special={"ascend": gelu_without_erf})
def gelu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """0.5 * x * (1 + erf(x / sqrt(2))), or the tanh form when the attribute asks for it"""
    if attrs.str("approximate", "none") == "tanh":
        return 0.5 * x * (1.0 + tanh_of_gelu(x))
    return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))


def _fast_gelu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x / (1 + exp(-1.702 * x))"""
    return x / (1.0 + ops.exp(-FAST_GELU_SCALE * x))


FAST_GELU = expander("FastGeLU")(_fast_gelu)
FAST_GELU_LOWER = expander("FastGelu")(_fast_gelu)


@expander("Softsign")
def softsign(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x / (1 + |x|)"""
    return x / (1.0 + abs(x))


def erfc_by_fraction(x: Tensor, *, attrs: Attrs) -> Expansion:
    """1 - erf(x), the erf by a fraction"""
    return only_float32(x) or 1.0 - erf_by_fraction(x)


@expander("Erfc", special={"ascend": erfc_by_fraction})
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


def only_float32(x: Tensor) -> Declined | None:
    """A fraction with float32 coefficients is no double precision erf."""
    return Declined("the fraction for erf is accurate to float32 only") if x.dtype.bits > 32 else None
