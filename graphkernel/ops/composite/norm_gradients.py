"""Gradients of layer norm and of root mean square norm."""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.exact import exact
from graphkernel.ops.composite.normalize import NORM_ATTRIBUTES
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.operators.type_rules import axis_of, expect_dtype, floating, reduced_shape, shape_text
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def _layer_norm_gradient_type(types: Types, attrs: Attrs) -> Types:
    x, dy, variance, mean, gamma = types
    expect_dtype(floating, *types)
    norm = axis_of(attrs.int("begin_norm_axis", -1), x.rank)
    params = axis_of(attrs.int("begin_params_axis", -1), x.rank)
    statistics = reduced_shape(x.shape, range(norm, x.rank), keep_dims=True)
    if dy.shape != x.shape or gamma.shape != x.shape[params:]:
        raise TypeRuleError(
            f"dy needs the shape {shape_text(x.shape)} and gamma {shape_text(x.shape[params:])}, "
            f"got {shape_text(dy.shape)} and {shape_text(gamma.shape)}"
        )
    if not mean.shape == variance.shape == statistics:
        raise TypeRuleError(f"mean and variance need the shape {shape_text(statistics)}, got {mean} and {variance}")
    return (x, gamma, gamma)


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    return x.mean(axis=axes, keepdims=True)


def _layer_norm_gradient(
    x: Array, dy: Array, variance: Array, mean: Array, gamma: Array, *, attrs: Attrs
) -> tuple[Array, Array, Array]:
    """(x, dy, variance, mean, gamma) -> (dx, dgamma, dbeta), with the statistics that LayerNorm gave."""
    axes = tuple(range(attrs.int("begin_norm_axis", -1) % x.ndim, x.ndim))
    others = tuple(range(attrs.int("begin_params_axis", -1) % x.ndim))
    rstd = 1 / np.sqrt(variance + attrs.float("epsilon", 1e-12))
    normalized, scaled = (x - mean) * rstd, dy * gamma
    dx = rstd * (scaled - _mean(scaled, axes) - normalized * _mean(scaled * normalized, axes))
    return dx, (dy * normalized).sum(axis=others), dy.sum(axis=others)


LAYER_NORM_GRAD = exact(
    "LayerNormGrad", Kind.OPAQUE, 5, _layer_norm_gradient_type, _layer_norm_gradient, attributes=NORM_ATTRIBUTES
)


def _rms_norm_gradient_type(types: Types, attrs: Attrs) -> Types:
    dy, x, rstd, gamma = types
    expect_dtype(floating, *types)
    axes = range(x.rank - gamma.rank, x.rank)
    statistics = reduced_shape(x.shape, axes, keep_dims=True) if gamma.rank <= x.rank else ()
    if dy.shape != x.shape or gamma.shape != x.shape[x.rank - gamma.rank :] or rstd.shape != statistics:
        raise TypeRuleError(f"dy, rstd and gamma do not fit {x}: got {dy}, {rstd} and {gamma}")
    return (x, gamma)


def _rms_norm_gradient(dy: Array, x: Array, rstd: Array, gamma: Array, *, attrs: Attrs) -> tuple[Array, Array]:
    """(dy, x, rstd, gamma) -> (dx, dgamma), with the rstd that RmsNorm gave."""
    axes, others = tuple(range(x.ndim - gamma.ndim, x.ndim)), tuple(range(x.ndim - gamma.ndim))
    normalized, scaled = x * rstd, dy * gamma
    dx = rstd * (scaled - normalized * _mean(scaled * normalized, axes))
    return dx, (dy * normalized).sum(axis=others)


RMS_NORM_GRAD = exact("RmsNormGrad", Kind.OPAQUE, 4, _rms_norm_gradient_type, _rms_norm_gradient)
