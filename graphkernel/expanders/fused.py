"""The products of the named fusion passes in terms of basic operators, so that they run on every target.

A product is declared as a composition of other operators (:mod:`graphkernel.ops.fused.fused`). Its expansion is that
composition with each composite part expanded in turn.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel import ops
from graphkernel.expanders.activation import gelu_of_mindspore, relu, silu
from graphkernel.expanders.base import Declined, Expander, Expansion, expand, expander
from graphkernel.expanders.normalize import layer_norm, rms_norm
from graphkernel.expanders.softmax import softmax
from graphkernel.ops import Tensor
from graphkernel.ops.fused import fused_matmul, fused_norm, fused_quant, fused_shape, fused_transformer
from graphkernel.ops.fused.fused import Composition
from kernelgen.tensor.graph import Builder, Value, keep
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import Attrs

ROUNDINGS = {"ROUND": ops.round, "FLOOR": ops.floor, "CEIL": ops.ceil, "TRUNC": ops.trunc}


@expander(fused_norm.LAYER_NORM_V3)
def layer_norm_v3(x: Tensor, gamma: Tensor, beta: Tensor, *, attrs: Attrs) -> Expansion:
    """(d * rstd * gamma + beta, mean, rstd) with d = x - mean and rstd = 1 / sqrt(variance + epsilon)"""
    return _with_rstd(x, gamma, beta, attrs)


@expander(fused_norm.LAYER_NORM_EXT)
def layer_norm_ext(x: Tensor, gamma: Tensor, beta: Tensor, *, attrs: Attrs) -> Expansion:
    """(d * rstd * gamma + beta, mean, rstd) with d = x - mean and rstd = 1 / sqrt(variance + epsilon)"""
    axis = x.ndim - gamma.ndim
    norm = {"begin_norm_axis": axis, "begin_params_axis": axis, "epsilon": attrs.float("epsilon", 1e-5)}
    return _with_rstd(x, gamma, beta, Attrs.of(norm))


def _with_rstd(x: Tensor, gamma: Tensor, beta: Tensor, attrs: Attrs) -> Expansion:
    found = layer_norm.function(x, gamma, beta, attrs=attrs)
    if not isinstance(found, tuple):
        return found
    y, mean, variance = found
    return y, mean, ops.rsqrt(variance + attrs.float("epsilon", 1e-7))


@expander(fused_quant.QUANT_V2)
def quant_v2(x: Tensor, scale: Tensor, offset: Tensor, *, attrs: Attrs) -> Tensor:
    """int8(min(max(round(x * scale + offset), -128), 127)), NaN to 0"""
    factor, shift = (fused_norm.as_dtype(operand, x.dtype) for operand in (scale, offset))
    factor = factor * factor if attrs.bool("sqrt_mode", False) else factor
    return saturated(ROUNDINGS[attrs.str("rounding_mode", "ROUND")](x * factor + shift))


@expander(fused_quant.DYNAMIC_QUANT)
def dynamic_quant(x: Tensor, *smooth: Tensor, attrs: Attrs) -> Expansion:
    """(int8(round(x * smooth / scale)), scale) with scale = max(|x * smooth|) / 127 of each row"""
    for scales in smooth:
        x = x * scales
    scale = ops.reduce_max(abs(x), -1, keep_dims=True) / float(fused_quant.GREATEST)
    quotient = x / ops.select(scale == 0, 1, scale)
    return saturated(ops.round(quotient)), ops.reshape(scale, x.shape[:-1])


def saturated(x: Tensor) -> Tensor:
    """Whole numbers as int8: out of range to the nearest bound, NaN to 0."""
    bounded = ops.minimum(ops.maximum(x, fused_quant.LEAST), fused_quant.GREATEST)
    return ops.cast(ops.select(ops.is_nan(x), 0, bounded), fused_quant.INT8)


@expander(fused_quant.QUANT_BATCH_MATMUL)
def quant_batch_matmul(x1: Tensor, x2: Tensor, scale: Tensor, *more: Tensor, attrs: Attrs) -> Tensor:
    """cast((int32(x1 @ x2) + bias) * scale * pertoken_scale of each row)"""
    optional = dict(zip(fused_quant.optional_operands(attrs), more, strict=True))
    transposes = (attrs.bool("transpose_x1", False), attrs.bool("transpose_x2", False))
    total = ops.matmul(ops.cast(x1, fused_quant.INT32), ops.cast(x2, fused_quant.INT32), *transposes)
    if "bias" in optional:
        total = total + optional["bias"]
    result = ops.cast(total, fused_quant.FLOAT32) * scale
    if "pertoken_scale" in optional:
        rows = optional["pertoken_scale"]
        result = result * ops.reshape(rows, (*rows.shape, 1))
    return ops.cast(result, attrs.str("dtype", "float16"))


@expander(fused_shape.DYNAMIC_RESHAPE, wide=False)
def dynamic_reshape(x: Tensor, extents: Tensor, *, attrs: Attrs) -> Tensor:
    """reshape(x, shape)"""
    return ops.reshape(x, attrs.dims("shape"))


@expander(fused_shape.RESHAPE_EXT, wide=False)
def reshape_ext(x: Tensor, *like: Tensor, attrs: Attrs) -> Tensor:
    """reshape(x, shape)"""
    return ops.reshape(x, attrs.dims("shape"))


PARTS: Mapping[str, Expander] = {
    entry.name: entry
    for entry in (
        layer_norm, layer_norm_v3, rms_norm, softmax, relu, silu, gelu_of_mindspore, quant_v2, dynamic_quant, quant_batch_matmul
    )
}  # fmt: skip


def unfolded(op: Operator, composition: Composition, *, wide: bool = True) -> Expander:
    """The expander of a composed operator. Where it multiplies matrices they stay narrow, and only the rest is widened."""

    def function(*operands: Tensor, attrs: Attrs) -> Expansion:
        builder = operands[0].builder
        known: dict[Value, Value] = {operand.value: operand.value for operand in operands}
        results: list[Tensor] = []
        for result in composition(*operands, attrs=attrs):
            declined = _make_basic(result.value, known, builder)
            if declined is not None:
                return declined
            results.append(Tensor(known[result.value], builder))
        return tuple(results)

    function.__doc__ = composition.__doc__
    return Expander(op.name, function, wide)


def _make_basic(value: Value, known: dict[Value, Value], builder: Builder) -> Declined | None:
    """Adds to ``known`` what stands for a value and for all that it is made of; or says why a part does not expand."""
    if value in known:
        return None
    node = value.node
    for arg in node.args:
        declined = _make_basic(arg, known, builder)
        if declined is not None:
            return declined
    args = tuple(known[arg] for arg in node.args)
    found = expand(PARTS[node.op.name], node, args, builder) if node.op.composite else keep(node, args).outs
    if isinstance(found, Declined):
        return found
    known.update(zip(node.outs, found, strict=True))
    return None


ADD_LAYER_NORM = unfolded(fused_norm.ADD_LAYER_NORM, fused_norm.add_layer_norm)
ADD_LAYER_NORM_V2 = unfolded(fused_norm.ADD_LAYER_NORM_V2, fused_norm.add_layer_norm_v2)
ADD_RMS_NORM = unfolded(fused_norm.ADD_RMS_NORM, fused_norm.add_rms_norm)
RMS_NORM_QUANT = unfolded(fused_quant.RMS_NORM_QUANT, fused_quant.rms_norm_quant)
ADD_RMS_NORM_QUANT_V2 = unfolded(fused_quant.ADD_RMS_NORM_QUANT_V2, fused_quant.add_rms_norm_quant)
ADD_RMS_NORM_DYNAMIC_QUANT = unfolded(fused_quant.ADD_RMS_NORM_DYNAMIC_QUANT, fused_quant.add_rms_norm_dynamic_quant)
MATMUL_SPLIT_OUT2 = unfolded(fused_matmul.MATMUL_SPLIT_OUT2, fused_matmul.matmul_split_2, wide=False)
MATMUL_SPLIT_OUT3 = unfolded(fused_matmul.MATMUL_SPLIT_OUT3, fused_matmul.matmul_split_3, wide=False)
MATMUL_SPLIT_SILU_OUT2 = unfolded(fused_matmul.MATMUL_SPLIT_SILU_OUT2, fused_matmul.matmul_split_silu_2, wide=False)
MATMUL_BIAS_SPLIT_OUT2 = unfolded(fused_matmul.MATMUL_BIAS_SPLIT_OUT2, fused_matmul.matmul_bias_split_2, wide=False)
MATMUL_BIAS_SPLIT_OUT3 = unfolded(fused_matmul.MATMUL_BIAS_SPLIT_OUT3, fused_matmul.matmul_bias_split_3, wide=False)
MATMUL_BIAS_SPLIT_SILU_OUT2 = unfolded(
    fused_matmul.MATMUL_BIAS_SPLIT_SILU_OUT2, fused_matmul.matmul_bias_split_silu_2, wide=False
)
QUANT_SPLIT_OUT2 = unfolded(fused_matmul.QUANT_SPLIT_OUT2, fused_matmul.quant_matmul_split_2, wide=False)
QUANT_SPLIT_OUT3 = unfolded(fused_matmul.QUANT_SPLIT_OUT3, fused_matmul.quant_matmul_split_3, wide=False)
QUANT_SPLIT_SILU_OUT2 = unfolded(fused_matmul.QUANT_SPLIT_SILU_OUT2, fused_matmul.quant_matmul_split_silu_2, wide=False)
FUSED_MATMUL_ELEM_BINARY = unfolded(fused_matmul.FUSED_MATMUL_ELEM_BINARY, fused_matmul.matmul_elem_binary, wide=False)
FUSED_MATMUL_ELEM_UNARY = unfolded(fused_matmul.FUSED_MATMUL_ELEM_UNARY, fused_matmul.matmul_elem_unary, wide=False)
MATMUL_ALL_REDUCE = unfolded(fused_matmul.MATMUL_ALL_REDUCE, fused_matmul.matmul_all_reduce, wide=False)
PROMPT_FLASH_ATTENTION = unfolded(
    fused_transformer.PROMPT_FLASH_ATTENTION, fused_transformer.prompt_flash_attention, wide=False
)
SWIGLU = unfolded(fused_transformer.SWIGLU, fused_transformer.swiglu)
ROTARY_POSITION_EMBEDDING = unfolded(
    fused_transformer.ROTARY_POSITION_EMBEDDING, fused_transformer.rotary_position_embedding
)

NAMED: Mapping[str, Expander] = {
    entry.name: entry
    for entry in (
        ADD_LAYER_NORM, ADD_LAYER_NORM_V2, ADD_RMS_NORM, RMS_NORM_QUANT, ADD_RMS_NORM_QUANT_V2, ADD_RMS_NORM_DYNAMIC_QUANT,
        MATMUL_SPLIT_OUT2, MATMUL_SPLIT_OUT3, MATMUL_SPLIT_SILU_OUT2, MATMUL_BIAS_SPLIT_OUT2, MATMUL_BIAS_SPLIT_OUT3,
        MATMUL_BIAS_SPLIT_SILU_OUT2, QUANT_SPLIT_OUT2, QUANT_SPLIT_OUT3, QUANT_SPLIT_SILU_OUT2, FUSED_MATMUL_ELEM_BINARY,
        FUSED_MATMUL_ELEM_UNARY, MATMUL_ALL_REDUCE, PROMPT_FLASH_ATTENTION, SWIGLU, ROTARY_POSITION_EMBEDDING,
        quant_batch_matmul, quant_v2, dynamic_quant, reshape_ext,
    )
}  # fmt: skip
"""What Ascend has one operator for, by name."""
