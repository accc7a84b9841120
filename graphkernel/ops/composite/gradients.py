"""Gradients of activations and of Maximum and Minimum, element by element."""

from __future__ import annotations

from functools import partial

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.activation import FAST_GELU_SCALE, gated, logistic_and_slope
from graphkernel.ops.composite.exact import exact, exact_elementwise
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import real_number
from kernelgen.tensor.operators.families import Array, ArrayFunction
from kernelgen.tensor.operators.type_rules import broadcast_shapes, expect_dtype, floating
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def _fast_gelu_gradient(dy: Array, x: Array, *, attrs: Attrs) -> Array:
    s, slope = logistic_and_slope(FAST_GELU_SCALE * x)
    return dy * (s + FAST_GELU_SCALE * x * slope)


def _softplus_ext_gradient(dy: Array, x: Array, *, attrs: Attrs) -> Array:
    """dy * sigmoid(beta * x), dy itself where beta * x > threshold; from dy and the operand of SoftplusExt."""
    scaled = attrs.float("beta", 1.0) * x
    return np.where(scaled > attrs.float("threshold", 20.0), dy, gated(dy, scaled))


FAST_GELU_GRAD = exact_elementwise("FastGeLUGrad", 2, _fast_gelu_gradient, doc="From dy and the operand of FastGeLU.")
FAST_GELU_GRAD_LOWER = exact_elementwise("FastGeluGrad", 2, _fast_gelu_gradient, doc="Another name of FastGeLUGrad.")
SOFTPLUS_GRAD_EXT = exact_elementwise(
    "SoftplusGradExt", 2, _softplus_ext_gradient, attributes=(real_number("beta", 1.0), real_number("threshold", 20.0))
)


def _extremum_type(types: Types, attrs: Attrs) -> Types:
    x, y, dout = types
    expect_dtype(floating, *types)
    if dout.shape != broadcast_shapes((x.shape, y.shape)):
        expected = TensorType(broadcast_shapes((x.shape, y.shape)), dout.dtype)
        raise TypeRuleError(f"dout must have the type of the result, {expected}, got {dout}")
    return (x, y)


def _summed_to(array: Array, shape: tuple[int, ...]) -> Array:
    """The sum over the axes along which an operand of this shape was repeated."""
    extra = array.ndim - len(shape)
    axes = tuple(a for a in range(array.ndim) if a < extra or (shape[a - extra] == 1 and array.shape[a] != 1))
    return array.sum(axis=axes).reshape(shape)


def _extremum_gradient(chosen: ArrayFunction, x: Array, y: Array, dout: Array, *, attrs: Attrs) -> tuple[Array, Array]:
    first = chosen(x, y)
    return _summed_to(np.where(first, dout, 0), x.shape), _summed_to(np.where(first, 0, dout), y.shape)


MAXIMUM_GRAD = exact(
    "MaximumGrad",
    Kind.OPAQUE,
    3,
    _extremum_type,
    partial(_extremum_gradient, np.greater_equal),
    attributes=("grad_x", "grad_y"),
    doc="(x, y, dout) -> (dx, dy); equal operands give all to x. Both results are given whatever grad_x and grad_y say.",
)
MINIMUM_GRAD = exact(
    "MinimumGrad",
    Kind.OPAQUE,
    3,
    _extremum_type,
    partial(_extremum_gradient, np.less_equal),
    attributes=("grad_x", "grad_y"),
    doc="(x, y, dout) -> (dx, dy); equal operands give all to x. Both results are given whatever grad_x and grad_y say.",
)
