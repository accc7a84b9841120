"""Softmax, layer norms, means and biases: composite operators that reduce or broadcast."""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.batch_normalization import DATA_FORMAT, channel_axis
from graphkernel.ops.composite.moments import moments
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import axes, axis, real_number
from kernelgen.tensor.operators.families import Array, array_of, declare, reduction, rounded, widened
from kernelgen.tensor.operators.type_rules import (
    axes_of,
    axis_of,
    expect_dtype,
    floating,
    number,
    reduced_shape,
    shape_text,
)
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]

REDUCE_MEAN = reduction("ReduceMean", np.mean, floating, composite=True, doc="The mean over axes.", onnx="ReduceMean")
MEAN_EXT = reduction("MeanExt", np.mean, floating, composite=True, doc="ReduceMean, as mint.mean calls it.")


def _softmax_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    expect_dtype(floating, x)
    axes_of(attrs.ints("axis", (-1,)), x.rank)
    return (x,)


def _largest(x: Array, axes: tuple[int, ...]) -> Array:
    """Of nothing any number will do; cupy has none to start with."""
    return x.max(axis=axes, keepdims=True) if x.size else x.sum(axis=axes, keepdims=True)


def _softmax(x: Array, *, attrs: Attrs) -> Array:
    """exp(x) divided by its sum over the axes."""
    axes = attrs.ints("axis", (-1,))

    def compute(wide: Array) -> Array:
        e = np.exp(wide - _largest(wide, axes))
        return e / e.sum(axis=axes, keepdims=True)

    return rounded(compute)(x)


def _log_softmax(x: Array, *, attrs: Attrs) -> Array:
    """The logarithm of ops.softmax."""
    axes = attrs.ints("axis", (-1,))

    def compute(wide: Array) -> Array:
        shifted = wide - _largest(wide, axes)
        return shifted - np.log(np.exp(shifted).sum(axis=axes, keepdims=True))

    return rounded(compute)(x)


SOFTMAX = declare(
    "Softmax", Kind.OPAQUE, 1, _softmax_type, _softmax, attributes=(axes(default=-1),), composite=True, onnx="Softmax"
)
LOG_SOFTMAX = declare(
    "LogSoftmax",
    Kind.OPAQUE,
    1,
    _softmax_type,
    _log_softmax,
    attributes=(axes(default=-1),),
    composite=True,
    onnx="LogSoftmax",
)


def _layer_norm_type(types: Types, attrs: Attrs) -> Types:
    x, gamma, beta = types
    expect_dtype(floating, x, gamma, beta)
    norm = axis_of(attrs.int("begin_norm_axis", -1), x.rank)
    params = axis_of(attrs.int("begin_params_axis", -1), x.rank)
    for parameter in (gamma, beta):
        if parameter.shape != x.shape[params:]:
            raise TypeRuleError(
                f"gamma and beta need the shape {shape_text(x.shape[params:])}, got {shape_text(parameter.shape)}"
            )
    statistics = TensorType(reduced_shape(x.shape, range(norm, x.rank), keep_dims=True), x.dtype)
    return (x, statistics, statistics)


def _layer_norm(x: Array, gamma: Array, beta: Array, *, attrs: Attrs) -> tuple[Array, Array, Array]:
    """(x, gamma, beta) -> (y, mean, variance), over the axes from begin_norm_axis on."""
    wide = x.astype(np.float64)
    axes = tuple(range(attrs.int("begin_norm_axis", -1) % x.ndim, x.ndim))
    mean, variance = moments(wide, axes)
    y = (wide - mean) / np.sqrt(variance + attrs.float("epsilon", 1e-7)) * gamma + beta
    return y.astype(x.dtype), mean.astype(x.dtype), variance.astype(x.dtype)


NORM_AXES = (axis("begin_norm_axis", -1), axis("begin_params_axis", -1))
NORM_ATTRIBUTES = (*NORM_AXES, real_number("epsilon", 1e-7))
LAYER_NORM = declare(
    "LayerNorm", Kind.OPAQUE, 3, _layer_norm_type, _layer_norm, attributes=NORM_ATTRIBUTES, composite=True
)


def _rms_norm_type(types: Types, attrs: Attrs) -> Types:
    x, gamma = types
    expect_dtype(floating, x, gamma)
    if gamma.rank > x.rank or gamma.shape != x.shape[x.rank - gamma.rank :]:
        raise TypeRuleError(f"gamma must have the last dims of {shape_text(x.shape)}, got {shape_text(gamma.shape)}")
    axes = range(x.rank - gamma.rank, x.rank)
    return (x, TensorType(reduced_shape(x.shape, axes, keep_dims=True), x.dtype))


def _rms_norm(x: Array, gamma: Array, *, attrs: Attrs) -> tuple[Array, Array]:
    """(x, gamma) -> (x / rms(x) * gamma, 1 / rms(x)), over the dims of gamma."""
    wide = x.astype(np.float64)
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = 1 / np.sqrt(np.square(wide).mean(axis=axes, keepdims=True) + attrs.float("epsilon", 1e-6))
    return (wide * rstd * gamma).astype(x.dtype), rstd.astype(x.dtype)


RMS_NORM = declare(
    "RmsNorm", Kind.OPAQUE, 2, _rms_norm_type, _rms_norm, attributes=(real_number("epsilon", 1e-6),), composite=True
)


def _bias_add_type(types: Types, attrs: Attrs) -> Types:
    x, bias = types
    expect_dtype(number, x, bias)
    if x.rank < 2 or bias.shape != (x.shape[channel_axis(x.rank, attrs)],):
        raise TypeRuleError(f"bias must have the shape of the channel axis of {shape_text(x.shape)}")
    return (x,)


def _bias_add(x: Array, bias: Array, *, attrs: Attrs) -> Array:
    """Adds a vector along the channel axis."""
    channel = channel_axis(x.ndim, attrs)
    return rounded(np.add)(x, bias.reshape([-1 if axis == channel else 1 for axis in range(x.ndim)]))


BIAS_ADD = declare("BiasAdd", Kind.BROADCAST, 2, _bias_add_type, _bias_add, attributes=(DATA_FORMAT,), composite=True)


def _bias_add_grad_type(types: Types, attrs: Attrs) -> Types:
    (dy,) = types
    expect_dtype(number, dy)
    if dy.rank < 2:
        raise TypeRuleError("expects rank 2 at least")
    return (TensorType((dy.shape[_gradient_axis(dy.rank, attrs)],), dy.dtype),)


def _gradient_axis(rank: int, attrs: Attrs) -> int:
    """MindSpore reduces all but the last axis of rank 2 and 3 tensors whatever the format says."""
    return rank - 1 if rank <= 3 else channel_axis(rank, attrs)


def _bias_add_grad(dy: Array, *, attrs: Attrs) -> Array:
    """The sum over all axes but that of the channels."""
    channel = _gradient_axis(dy.ndim, attrs)
    axes = tuple(axis for axis in range(dy.ndim) if axis != channel)
    return array_of(widened(dy).sum(axis=axes)).astype(dy.dtype)


BIAS_ADD_GRAD = declare(
    "BiasAddGrad", Kind.REDUCE, 1, _bias_add_grad_type, _bias_add_grad, attributes=(DATA_FORMAT,), composite=True
)
