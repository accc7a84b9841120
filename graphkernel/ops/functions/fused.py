"""Python functions of the fused operators of transformers and of quantization; see
:mod:`graphkernel.ops.functions.pointwise`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphkernel.ops.fused import fused_norm, fused_quant, fused_shape, fused_transformer
from graphkernel.ops.tensor.apply import TensorLike, apply, apply_all
from graphkernel.ops.tensor.tensor import Operand, rank_of
from kernelgen.tensor.operators.type_rules import axis_of
from kernelgen.tensor.types import Dim, DType, dtype


def layer_norm_v3(
    x: TensorLike,
    gamma: Operand,
    beta: Operand,
    begin_norm_axis: int = -1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-7,
) -> tuple[Any, ...]:
    """Layer normalisation over the axes from ``begin_norm_axis`` on: (y, mean, rstd), statistics in float32."""
    norm, parameters = axis_of(begin_norm_axis, rank_of(x)), axis_of(begin_params_axis, rank_of(x))
    axes = {"begin_norm_axis": norm, "begin_params_axis": parameters}
    return apply_all(fused_norm.LAYER_NORM_V3, x, gamma, beta, **axes, epsilon=float(epsilon))


def layer_norm_ext(
    x: TensorLike, normalized_shape: Sequence[Dim], gamma: Operand, beta: Operand, epsilon: float = 1e-5
) -> tuple[Any, ...]:
    """Layer normalisation over the last axes, which have ``normalized_shape``: (y, mean, rstd)."""
    shape = tuple(normalized_shape)
    return apply_all(fused_norm.LAYER_NORM_EXT, x, gamma, beta, normalized_shape=shape, epsilon=float(epsilon))


def add_layer_norm(
    x1: TensorLike,
    x2: Operand,
    gamma: Operand,
    beta: Operand,
    begin_norm_axis: int = -1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-7,
) -> tuple[Any, ...]:
    """Layer normalisation of ``x1 + x2``: (y, mean, rstd, x1 + x2)."""
    norm, parameters = axis_of(begin_norm_axis, rank_of(x1)), axis_of(begin_params_axis, rank_of(x1))
    axes = {"begin_norm_axis": norm, "begin_params_axis": parameters}
    return apply_all(fused_norm.ADD_LAYER_NORM, x1, x2, gamma, beta, **axes, epsilon=float(epsilon))


def add_rms_norm(x1: TensorLike, x2: Operand, gamma: Operand, epsilon: float = 1e-6) -> tuple[Any, ...]:
    """RMS normalisation of ``x1 + x2``: (y, rstd, x1 + x2)."""
    return apply_all(fused_norm.ADD_RMS_NORM, x1, x2, gamma, epsilon=float(epsilon))


def quant_v2(
    x: TensorLike, scale: Operand, offset: Operand, sqrt_mode: bool = False, rounding_mode: str = "ROUND"
) -> TensorLike:
    """``int8(round(x * scale + offset))``, saturated; ``sqrt_mode`` squares the scale."""
    return apply(fused_quant.QUANT_V2, x, scale, offset, sqrt_mode=sqrt_mode, rounding_mode=rounding_mode)


def dynamic_quant(x: TensorLike, smooth: Operand | None = None) -> tuple[Any, ...]:
    """Each row scaled to -127 .. 127: (int8 of ``x / scale``, scale)."""
    return apply_all(fused_quant.DYNAMIC_QUANT, x, *(() if smooth is None else (smooth,)))


def quant_batch_matmul(
    x1: TensorLike,
    x2: Operand,
    scale: Operand,
    bias: Operand | None = None,
    pertoken_scale: Operand | None = None,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    result_dtype: str | DType = "float16",
) -> TensorLike:
    """The product of int8 matrices, plus an int32 bias, times the scales of columns and rows."""
    optional = {"bias": bias, "pertoken_scale": pertoken_scale}
    given = {name: operand for name, operand in optional.items() if operand is not None}
    attrs = {"transpose_x1": transpose_x1, "transpose_x2": transpose_x2, "dtype": dtype(result_dtype).name}
    return apply(fused_quant.QUANT_BATCH_MATMUL, x1, x2, scale, *given.values(), optional=tuple(given), **attrs)


def dynamic_reshape(x: TensorLike, extents: Operand, shape: Sequence[Dim]) -> TensorLike:
    """The elements of ``x`` in the shape that the tensor ``extents`` holds; ``shape`` repeats it for the type."""
    return apply(fused_shape.DYNAMIC_RESHAPE, x, extents, shape=tuple(shape))


def reshape_ext(x: TensorLike, like: Sequence[Operand], shape: Sequence[Dim]) -> TensorLike:
    """The elements of ``x`` in a shape whose extents are those of the tensors ``like``, or computed from them."""
    positions = tuple(range(1, len(like) + 1))
    return apply(fused_shape.RESHAPE_EXT, x, *like, shape=tuple(shape), only_depend_shape=positions)


def swiglu(x: TensorLike, axis: int = -1) -> TensorLike:
    """SiLU of the first half of an axis times the second half."""
    return apply(fused_transformer.SWIGLU, x, axis=axis_of(axis, rank_of(x)))


def prompt_flash_attention(
    query: TensorLike,
    key: Operand,
    value: Operand,
    mask: Operand | None = None,
    scale_value: float = 1.0,
    mask_value: float = fused_transformer.MASK_VALUE,
) -> TensorLike:
    """Attention over [batch, heads, positions, head size]; the mask is 1 where a key is seen and 0 where it is hidden."""
    extra = {} if mask is None else {"mask_value": float(mask_value)}
    heads = {"num_heads": query.shape[1], "num_key_value_heads": getattr(key, "shape", query.shape)[1]}
    operands = (query, key, value) if mask is None else (query, key, value, mask)
    return apply(
        fused_transformer.PROMPT_FLASH_ATTENTION,
        *operands,
        input_layout="BNSD",
        scale_value=float(scale_value),
        **heads,
        **extra,
    )
