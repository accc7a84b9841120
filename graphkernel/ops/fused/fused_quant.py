"""Quantization to int8, products of quantized matrices, and norms fused with the quantization after them.

Source: the primitives QuantV2, DynamicQuantExt, QuantBatchMatmul, RmsNormQuant, AddRmsNormQuantV2 and AddRmsNormDynamicQuant
of MindSpore. Arithmetic is in float32 (float64 for operands of it), step by step, so that kernels give the same integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.normalize import RMS_NORM
from graphkernel.ops.fused.fused import composed
from graphkernel.ops.fused.fused_norm import add_rms_norm, statistics_dtype
from graphkernel.ops.tensor.apply import apply, apply_all
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import data_type, flag, real_number, text
from kernelgen.tensor.operators.families import Array, array_of, declare
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.type_rules import broadcast_shapes, expect_dtype, floating, real, shape_text
from kernelgen.tensor.types import Attrs, TensorType, dtype

Types = tuple[TensorType, ...]

INT8, INT32, FLOAT32 = dtype("int8"), dtype("int32"), dtype("float32")
LEAST, GREATEST = -128, 127
ROUNDINGS = {"ROUND": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}


def _quant_type(types: Types, attrs: Attrs) -> Types:
    x, scale, offset = types
    expect_dtype(floating, x)
    expect_dtype(floating, scale)
    expect_dtype(real, offset)
    if attrs.str("rounding_mode", "ROUND") not in ROUNDINGS:
        raise TypeRuleError(f"rounding_mode must be one of {', '.join(ROUNDINGS)}, got {attrs.str('rounding_mode')!r}")
    if broadcast_shapes((x.shape, scale.shape, offset.shape)) != x.shape:
        raise TypeRuleError(f"scale and offset must broadcast to {shape_text(x.shape)}")
    return (TensorType(x.shape, INT8),)


def _quant(x: Array, scale: Array, offset: Array, *, attrs: Attrs) -> Array:
    """(x, scale, offset) -> int8(round(x * scale + offset)), saturated, NaN to 0; sqrt_mode squares the scale."""
    wide = statistics_dtype(dtype(x.dtype)).numpy
    factor = scale.astype(wide)
    factor = factor * factor if attrs.bool("sqrt_mode", False) else factor
    return _saturated(ROUNDINGS[attrs.str("rounding_mode", "ROUND")](x.astype(wide) * factor + offset.astype(wide)))


def _saturated(x: Array) -> Array:
    """As int8: what is out of range becomes the nearest bound, NaN becomes 0."""
    return np.where(np.isnan(x), 0, np.clip(x, LEAST, GREATEST)).astype(np.int8)


QUANT_V2 = declare(
    "QuantV2",
    Kind.ELEMWISE,
    3,
    _quant_type,
    _quant,
    attributes=(flag("sqrt_mode"), text("rounding_mode", "ROUND")),
    composite=True,
)


def _dynamic_type(types: Types, attrs: Attrs) -> Types:
    x, *smooth = types
    expect_dtype(floating, *types)
    if x.rank < 1 or len(smooth) > 1 or any(scales.shape != x.shape[-1:] for scales in smooth):
        raise TypeRuleError("takes x and optionally smooth scales for its last axis")
    return (TensorType(x.shape, INT8), TensorType(x.shape[:-1], statistics_dtype(x.dtype)))


def _dynamic(x: Array, smooth: Array | None = None, *, attrs: Attrs) -> tuple[Array, Array]:
    """(x[, smooth]) -> (int8(round(x * smooth / scale)), scale) with scale = max(|x * smooth|) / 127 of each row."""
    wide = x.astype(statistics_dtype(dtype(x.dtype)).numpy)
    if smooth is not None:
        wide = wide * smooth.astype(wide.dtype)
    scale = np.abs(wide).max(axis=-1, keepdims=True) / np.asarray(GREATEST, wide.dtype)
    quotient = wide / np.where(scale == 0, np.asarray(1, wide.dtype), scale)
    return _saturated(np.rint(quotient)), scale[..., 0]


DYNAMIC_QUANT = declare("DynamicQuant", Kind.OPAQUE, None, _dynamic_type, _dynamic, composite=True)


def _quant_product_type(types: Types, attrs: Attrs) -> Types:
    x1, x2, scale, *more = types
    if x1.dtype != INT8 or x2.dtype != INT8 or scale.dtype != FLOAT32:
        raise TypeRuleError("x1 and x2 must be int8 and scale float32")
    (product,) = BATCH_MATMUL.infer((x1, x2), _transposes(attrs))
    _expect_vector("scale", scale, product, -1)
    given = optional_operands(attrs)
    if given not in ((), ("bias",), ("pertoken_scale",), ("bias", "pertoken_scale")) or len(more) != len(given):
        raise TypeRuleError(f"optional {given} does not name the {len(more)} operands after scale")
    for name, type_ in zip(given, more, strict=True):
        _expect_vector(name, type_, product, -1 if name == "bias" else -2)
        if type_.dtype != (INT32 if name == "bias" else FLOAT32):
            raise TypeRuleError("bias must be int32 and pertoken_scale float32")
    result = dtype(attrs.str("dtype", "float16"))
    if not result.is_float:
        raise TypeRuleError(f"dtype must be a float, got {result}")
    return (TensorType(product.shape, result),)


def optional_operands(attrs: Attrs) -> tuple[str, ...]:
    """The names of the operands of a QuantBatchMatmul that follow scale."""
    names = attrs.get("optional", ())
    return tuple(map(str, names)) if isinstance(names, tuple) else (str(names),)


def _expect_vector(name: str, type_: TensorType, product: TensorType, axis: int) -> None:
    if type_.shape not in ((1,), (product.shape[axis],)):
        raise TypeRuleError(f"{name} must be a vector of {product.shape[axis]}, got {shape_text(type_.shape)}")


def _transposes(attrs: Attrs) -> Attrs:
    return Attrs.of(
        transpose_a=attrs.bool("transpose_x1", False),
        transpose_b=attrs.bool("transpose_x2", False),
    )


def _quant_product(x1: Array, x2: Array, scale: Array, *more: Array, attrs: Attrs) -> Array:
    """(x1, x2, scale[, bias][, pertoken_scale]) -> (int32(x1 @ x2) + bias) * scale * pertoken_scale of each row;
    optional names the operands after scale."""
    optional = dict(zip(optional_operands(attrs), more, strict=True))
    total = BATCH_MATMUL.meaning(x1.astype(np.int32), x2.astype(np.int32), attrs=_transposes(attrs))
    if "bias" in optional:
        total = total + optional["bias"]
    result = total.astype(np.float32) * scale
    if "pertoken_scale" in optional:
        result = result * optional["pertoken_scale"][:, None]
    return array_of(result).astype(dtype(attrs.str("dtype", "float16")).numpy)


QUANT_BATCH_MATMUL = declare(
    "QuantBatchMatmul",
    Kind.OPAQUE,
    None,
    _quant_product_type,
    _quant_product,
    attributes=("optional", flag("transpose_x1"), flag("transpose_x2"), data_type("dtype", None)),
    composite=True,
)


def rms_norm_quant(x: Any, gamma: Any, scale: Any, offset: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """QuantV2(RmsNorm(x, gamma), scale, offset)"""
    y, _ = apply_all(RMS_NORM, x, gamma, **attrs)
    return (apply(QUANT_V2, y, scale, offset),)


def add_rms_norm_quant(x1: Any, x2: Any, gamma: Any, scale: Any, offset: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """(QuantV2(y, scale, offset), y, s) with s = x1 + x2 and y = RmsNorm(s)"""
    y, _, total = add_rms_norm(x1, x2, gamma, attrs=attrs)
    return apply(QUANT_V2, y, scale, offset), y, total


def add_rms_norm_dynamic_quant(x1: Any, x2: Any, gamma: Any, *smooth: Any, attrs: Attrs) -> tuple[Any, ...]:
    """(quantized, scale, y, s) with s = x1 + x2, y = RmsNorm(s) and (quantized, scale) = DynamicQuant(y[, smooth])"""
    y, _, total = add_rms_norm(x1, x2, gamma, attrs=attrs)
    return *apply_all(DYNAMIC_QUANT, y, *smooth), y, total


RMS_NORM_QUANT = composed("RmsNormQuant", rms_norm_quant, 4, attributes=(real_number("epsilon", None),))
ADD_RMS_NORM_QUANT_V2 = composed("AddRmsNormQuantV2", add_rms_norm_quant, 5, attributes=(real_number("epsilon", None),))
ADD_RMS_NORM_DYNAMIC_QUANT = composed(
    "AddRmsNormDynamicQuant", add_rms_norm_dynamic_quant, None, attributes=(real_number("epsilon", None),)
)
