"""Layer norms with statistics in float32, and norms fused with the addition before them.

Source: the primitives LayerNormV3, LayerNormExt, AddLayerNorm, AddLayerNormV2 and AddRmsNorm of MindSpore.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.moments import moments
from graphkernel.ops.composite.normalize import LAYER_NORM, NORM_ATTRIBUTES, RMS_NORM
from graphkernel.ops.fused.fused import composed
from graphkernel.ops.tensor.apply import TensorLike, apply, apply_all
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import dims, plain, real_number
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import ADD
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import expect_dtype, floating, reduced_shape, shape_text
from kernelgen.tensor.types import Attrs, DType, TensorType, dtype

Types = tuple[TensorType, ...]

FLOAT64 = dtype("float64")


def statistics_dtype(of: DType) -> DType:
    """The type of mean and rstd: float32, or float64 for operands of it."""
    return of if of == FLOAT64 else dtype("float32")


def _norm_v3_type(types: Types, attrs: Attrs) -> Types:
    """As LayerNorm, but with statistics in :func:`statistics_dtype`."""
    y, mean, _ = LAYER_NORM.infer(types, attrs)
    statistics = TensorType(mean.shape, statistics_dtype(y.dtype))
    return (y, statistics, statistics)


def _normalized(x: Array, gamma: Array, beta: Array, axis: int, epsilon: float) -> tuple[Array, Array, Array]:
    """(y, mean, rstd) over the axes from ``axis`` on, computed in float64."""
    wide = x.astype(np.float64)
    axes = tuple(range(axis, x.ndim))
    mean, variance = moments(wide, axes)
    rstd = 1 / np.sqrt(variance + epsilon)
    y = (wide - mean) * rstd * gamma.astype(np.float64) + beta.astype(np.float64)
    statistics = np.float64 if x.dtype == np.float64 else np.float32
    return y.astype(x.dtype), mean.astype(statistics), rstd.astype(statistics)


def _norm_v3(x: Array, gamma: Array, beta: Array, *, attrs: Attrs) -> tuple[Array, Array, Array]:
    """(x, gamma, beta) -> (y, mean, rstd): LayerNorm with 1 / sqrt(variance + epsilon), statistics in float32."""
    axis = attrs.int("begin_norm_axis", -1) % x.ndim
    return _normalized(x, gamma, beta, axis, attrs.float("epsilon", 1e-7))


LAYER_NORM_V3 = declare(
    "LayerNormV3", Kind.OPAQUE, 3, _norm_v3_type, _norm_v3, attributes=NORM_ATTRIBUTES, composite=True
)


def _norm_ext_type(types: Types, attrs: Attrs) -> Types:
    x, gamma, beta = types
    expect_dtype(floating, *types)
    shape = attrs.dims("normalized_shape")
    if not shape or len(shape) > x.rank or x.shape[x.rank - len(shape) :] != shape:
        raise TypeRuleError(f"normalized_shape {shape_text(shape)} is not how {shape_text(x.shape)} ends")
    if gamma.shape != shape or beta.shape != shape:
        raise TypeRuleError(f"gamma and beta need the shape {shape_text(shape)}")
    axes = range(x.rank - len(shape), x.rank)
    statistics = TensorType(reduced_shape(x.shape, axes, keep_dims=True), statistics_dtype(x.dtype))
    return (x, statistics, statistics)


def _norm_ext(x: Array, gamma: Array, beta: Array, *, attrs: Attrs) -> tuple[Array, Array, Array]:
    """(x, gamma, beta) -> (y, mean, rstd) over the last axes, which are normalized_shape; statistics in float32."""
    return _normalized(x, gamma, beta, x.ndim - gamma.ndim, attrs.float("epsilon", 1e-5))


LAYER_NORM_EXT = declare(
    "LayerNormExt",
    Kind.OPAQUE,
    3,
    _norm_ext_type,
    _norm_ext,
    attributes=(dims("normalized_shape"), real_number("epsilon", 1e-5)),
    traits=Traits(call=("x", "normalized_shape", "gamma", "beta", "epsilon")),
    composite=True,
)


def add_layer_norm(x1: Any, x2: Any, gamma: Any, beta: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """(y, mean, rstd, s) with s = x1 + x2 and y = LayerNorm(s); statistics in the type of x1"""
    total = apply(ADD, x1, x2)
    y, mean, _ = apply_all(LAYER_NORM, total, gamma, beta, **attrs)
    _, _, rstd = apply_all(LAYER_NORM_V3, total, gamma, beta, **attrs)
    return y, mean, as_dtype(rstd, dtype(total.dtype)), total


def add_layer_norm_v2(x1: Any, x2: Any, gamma: Any, beta: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """(y, mean, rstd[, s]) with s = x1 + x2 and y = LayerNormV3(s); s is a result if additional_output"""
    total = apply(ADD, x1, x2)
    results = apply_all(LAYER_NORM_V3, total, gamma, beta, **attrs.without("additional_output"))
    return (*results, total) if attrs.bool("additional_output", True) else results


def add_rms_norm(x1: Any, x2: Any, gamma: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """(y, rstd, s) with s = x1 + x2 and y = RmsNorm(s), which is computed in the type of gamma"""
    total = apply(ADD, x1, x2)
    own, inner = dtype(total.dtype), dtype(gamma.dtype)
    y, rstd = apply_all(RMS_NORM, as_dtype(total, inner), gamma, **attrs)
    return as_dtype(y, own), rstd, total


def as_dtype(x: TensorLike, of: DType) -> TensorLike:
    """The operand in a data type; itself when it has it."""
    return x if dtype(x.dtype) == of else apply(CAST, x, dst_type=of.name)


ADD_LAYER_NORM = composed("AddLayerNorm", add_layer_norm, 4, attributes=NORM_ATTRIBUTES)
ADD_LAYER_NORM_V2 = composed(
    "AddLayerNormV2", add_layer_norm_v2, 4, attributes=(*NORM_ATTRIBUTES, plain("additional_output", "bool", None))
)
ADD_RMS_NORM = composed("AddRmsNorm", add_rms_norm, 3, attributes=(real_number("epsilon", 1e-6),))
