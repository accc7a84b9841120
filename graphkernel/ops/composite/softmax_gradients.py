"""Gradients of softmax and of its logarithm."""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.exact import exact
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import axes, axis
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.operators.type_rules import axes_of, broadcast_shapes, expect_dtype, floating
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def _same_type(types: Types, attrs: Attrs) -> Types:
    """Both operands have one type, which is the result's."""
    first, second = types
    expect_dtype(floating, *types)
    if first.shape != second.shape:
        raise TypeRuleError(f"both operands must have one shape, got {first} and {second}")
    axes_of(attrs.ints("axis" if "dim" not in attrs else "dim", (-1,)), first.rank)
    return (first,)


def _softmax_gradient(y: Array, dy: Array, *, attrs: Attrs) -> Array:
    """The gradient of ops.softmax from its result y and dy."""
    return y * (dy - (y * dy).sum(axis=attrs.ints("axis", (-1,)), keepdims=True))


def _softmax_backward(dy: Array, y: Array, *, attrs: Attrs) -> Array:
    """The gradient of ops.softmax from dy and its result y."""
    return y * (dy - (y * dy).sum(axis=attrs.ints("dim", (-1,)), keepdims=True))


def _log_softmax_gradient(y: Array, dy: Array, *, attrs: Attrs) -> Array:
    """The gradient of ops.log_softmax from its result (the logarithms) and dy."""
    return dy - np.exp(y) * dy.sum(axis=attrs.ints("axis", (-1,)), keepdims=True)


SOFTMAX_GRAD = exact("SoftmaxGrad", Kind.OPAQUE, 2, _same_type, _softmax_gradient, attributes=(axes(default=-1),))
SOFTMAX_BACKWARD = exact(
    "SoftmaxBackward", Kind.OPAQUE, 2, _same_type, _softmax_backward, attributes=(axis("dim", -1),)
)
LOG_SOFTMAX_GRAD = exact(
    "LogSoftmaxGrad", Kind.OPAQUE, 2, _same_type, _log_softmax_gradient, attributes=(axes(default=-1),)
)


def _ext_type(types: Types, attrs: Attrs) -> Types:
    x, y, z = types
    expect_dtype(floating, *types)
    shape = broadcast_shapes((x.shape, y.shape))
    axes_of(attrs.ints("axis", (-1,)), len(shape))
    if x.shape != y.shape or broadcast_shapes((shape, z.shape)) != shape:
        raise TypeRuleError("the first two operands must have one shape, to which the third broadcasts")
    return (x,)


def _softmax_gradient_ext(dy: Array, y: Array, scale: Array, *, attrs: Attrs) -> Array:
    """(dy, y, scale): the gradient of a softmax times a scale, (dy - sum(dy * y)) * y * scale."""
    return (dy - (dy * y).sum(axis=attrs.ints("axis", (-1,)), keepdims=True)) * y * scale


SOFTMAX_GRAD_EXT = exact(
    "SoftmaxGradExt", Kind.OPAQUE, 3, _ext_type, _softmax_gradient_ext, attributes=(axes(default=-1),)
)
