"""Activations with parameters, and functions that only Ascend must have spelled out.

Where an accurate form needs log1p or expm1, Ascend makes them of log and exp (:mod:`graphkernel.expanders.accurate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from graphkernel import ops
from graphkernel.expanders.accurate import erf_by_fraction, expm1_by_exp, log1p_by_log, sinh_by_exp, tanh_by_exp
from graphkernel.expanders.activation import only_float32
from graphkernel.expanders.base import Expansion, expander
from graphkernel.ops import Tensor
from graphkernel.ops.composite import activation, activation_ext
from kernelgen.tensor.operators import elemwise
from kernelgen.tensor.types import Attrs

Function = Callable[[Tensor], Tensor]

HUGE = 1e8  # from here on x + sqrt(x^2 +- 1) is 2 x to the last bit


def _leaky_relu(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x where x >= 0, else alpha * x"""
    slope = attrs.float("negative_slope" if "negative_slope" in attrs else "alpha", 0.01)
    return ops.select(x < 0, slope * x, x)


LEAKY_RELU = expander(activation.LEAKY_RELU)(_leaky_relu)
LEAKY_RELU_EXT = expander(activation_ext.LEAKY_RELU_EXT)(_leaky_relu)


def _elu(x: Tensor, *, attrs: Attrs, expm1: Function = ops.expm1) -> Tensor:
    """x where x >= 0, else alpha * (exp(x) - 1)"""
    return ops.select(x < 0, attrs.float("alpha", 1.0) * expm1(ops.minimum(x, 0)), x)


ELU = expander(activation.ELU, special={"ascend": partial(_elu, expm1=expm1_by_exp)})(_elu)
ELU_EXT = expander(activation_ext.ELU_EXT, special={"ascend": partial(_elu, expm1=expm1_by_exp)})(_elu)


def soft(x: Tensor, log1p: Function) -> Tensor:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow"""
    return ops.maximum(x, 0) + log1p(ops.exp(-abs(x)))


def _softplus(x: Tensor, *, attrs: Attrs, log1p: Function = ops.log1p) -> Tensor:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow"""
    return soft(x, log1p)


SOFTPLUS = expander(activation.SOFTPLUS, special={"ascend": partial(_softplus, log1p=log1p_by_log)})(_softplus)


def _softplus_ext(x: Tensor, *, attrs: Attrs, log1p: Function = ops.log1p) -> Tensor:
    """x where beta * x > threshold, else softplus(beta * x) / beta"""
    beta = attrs.float("beta", 1.0)
    scaled = beta * x
    return ops.select(scaled > attrs.float("threshold", 20.0), x, soft(scaled, log1p) / beta)


SOFTPLUS_EXT = expander(activation_ext.SOFTPLUS_EXT, special={"ascend": partial(_softplus_ext, log1p=log1p_by_log)})(
    _softplus_ext
)


@expander(activation_ext.HSHRINK)
def hshrink(x: Tensor, *, attrs: Attrs) -> Tensor:
    """0 where |x| <= lambd, else x"""
    return ops.select(abs(x) <= attrs.float("lambd", 0.5), 0, x)


@expander(elemwise.TANH, targets=("ascend",))
def tanh(x: Tensor, *, attrs: Attrs) -> Expansion:
    """1 - 2 / (exp(2 * x) + 1), a continued fraction where |x| < 0.5"""
    return only_float32(x) or tanh_by_exp(x)


@expander(elemwise.SINH, targets=("ascend",))
def sinh(x: Tensor, *, attrs: Attrs) -> Expansion:
    """(exp(x) - exp(-x)) / 2, its series where |x| < 1; infinite already where exp(x) is"""
    return only_float32(x) or sinh_by_exp(x)


@expander(elemwise.COSH, targets=("ascend",))
def cosh(x: Tensor, *, attrs: Attrs) -> Tensor:
    """(exp(x) + exp(-x)) / 2; infinite already where exp(x) is"""
    return (ops.exp(x) + ops.exp(-x)) * 0.5


@expander(elemwise.ERF, targets=("ascend",))
def erf(x: Tensor, *, attrs: Attrs) -> Expansion:
    """x * P(x^2) / Q(x^2) with x held to +-3.92"""
    return only_float32(x) or erf_by_fraction(x)


def acosh_by_log(x: Tensor, *, attrs: Attrs) -> Tensor:
    """log1p(t + sqrt(t * (t + 2))) with t = x - 1, log(x) + log(2) for huge x"""
    t = ops.minimum(x, HUGE) - 1.0
    return ops.select(x > HUGE, ops.log(x) + math.log(2), log1p_by_log(t + ops.sqrt(t * (t + 2.0))))


@expander(activation_ext.ACOSH_EXT, special={"ascend": acosh_by_log})
def acosh_ext(x: Tensor, *, attrs: Attrs) -> Tensor:
    """acosh(x)"""
    return ops.acosh(x)


def asinh_by_log(x: Tensor, *, attrs: Attrs) -> Tensor:
    """sign(x) * log1p(a + a^2 / (1 + sqrt(a^2 + 1))) with a = |x|, log(a) + log(2) for huge a"""
    size = abs(x)
    a = ops.minimum(size, HUGE)
    square = a * a
    found = log1p_by_log(a + square / (1.0 + ops.sqrt(square + 1.0)))
    positive = ops.select(size > HUGE, ops.log(size) + math.log(2), found)
    return ops.select(x < 0, -positive, positive)


@expander(activation_ext.ASINH_EXT, special={"ascend": asinh_by_log})
def asinh_ext(x: Tensor, *, attrs: Attrs) -> Tensor:
    """asinh(x)"""
    return ops.asinh(x)
