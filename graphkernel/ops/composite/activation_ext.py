"""Activations with parameters, named ``...Ext`` after MindSpore's mint functions, and those with accurate forms."""

from __future__ import annotations

import numpy as np

from graphkernel.ops.composite.activation import FAST_GELU_SCALE, gated
from graphkernel.ops.composite.exact import exact_elementwise
from kernelgen.tensor.operators.attributes import real_number
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.types import Attrs


def _softplus(x: Array, *, attrs: Attrs) -> Array:
    """log(1 + exp(beta * x)) / beta, x itself where beta * x > threshold."""
    beta = attrs.float("beta", 1.0)
    scaled = beta * x
    soft = (np.maximum(scaled, 0) + np.log1p(np.exp(-np.abs(scaled)))) / beta
    return np.where(scaled > attrs.float("threshold", 20.0), x, soft)


def _elu(x: Array, *, attrs: Attrs) -> Array:
    """x where x >= 0, else alpha * (exp(x) - 1)."""
    return np.where(x < 0, attrs.float("alpha", 1.0) * np.expm1(np.minimum(x, 0)), x)


def _leaky_relu(x: Array, *, attrs: Attrs) -> Array:
    """x where x >= 0, else negative_slope * x."""
    return np.where(x < 0, attrs.float("negative_slope", 0.01) * x, x)


def _hard_shrink(x: Array, *, attrs: Attrs) -> Array:
    """0 where |x| <= lambd, else x."""
    return np.where(np.abs(x) <= attrs.float("lambd", 0.5), 0, x)


SOFTPLUS_EXT = exact_elementwise(
    "SoftplusExt", 1, _softplus, attributes=(real_number("beta", 1.0), real_number("threshold", 20.0))
)
ELU_EXT = exact_elementwise("EluExt", 1, _elu, attributes=(real_number("alpha", 1.0),))
LEAKY_RELU_EXT = exact_elementwise("LeakyReLUExt", 1, _leaky_relu, attributes=(real_number("negative_slope", 0.01),))
HSHRINK = exact_elementwise("HShrink", 1, _hard_shrink, attributes=(real_number("lambd", 0.5),))
FAST_GELU_LOWER = exact_elementwise(
    "FastGelu", 1, lambda x, attrs: gated(x, FAST_GELU_SCALE * x), doc="Another name of FastGeLU."
)
ACOSH_EXT = exact_elementwise(
    "AcoshExt", 1, lambda x, attrs: np.arccosh(x), doc="Acosh for targets without the function."
)
ASINH_EXT = exact_elementwise(
    "AsinhExt", 1, lambda x, attrs: np.arcsinh(x), doc="Asinh for targets without the function."
)
