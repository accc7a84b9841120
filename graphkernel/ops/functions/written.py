"""Python functions that do more than their operators: they choose one, join operands, or work out attributes.

All others are made from the records; see :mod:`graphkernel.ops.functions.derived`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkernel.errors import FrontendError
from graphkernel.ops.composite import activation
from graphkernel.ops.composite.split_sizes import SPLIT_WITH_SIZE
from graphkernel.ops.fused import fused_quant, fused_shape, fused_transformer
from graphkernel.ops.library import communication
from graphkernel.ops.tensor.apply import TensorLike, apply, apply_all
from graphkernel.ops.tensor.arguments import split_sizes
from graphkernel.ops.tensor.in_turn import record_in_turn
from graphkernel.ops.tensor.tensor import Operand, Tensor, rank_of
from graphkernel.ops.tensor.weak_typing import weak_array
from kernelgen.tensor.graph import Builder
from kernelgen.tensor.operators import creation, pieces
from kernelgen.tensor.operators import shape as shapes
from kernelgen.tensor.operators.attributes import Axes, as_ints
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.select import SELECT
from kernelgen.tensor.operators.slice_masks import masked_key
from kernelgen.tensor.operators.type_rules import axes_of, axis_of
from kernelgen.tensor.types import Dim, DType, Sym, dtype


def select(condition: TensorLike, x: Operand, y: Operand) -> TensorLike:
    """``x`` where the condition holds, else ``y``. Scalars take the data type of the other branch, else float32."""
    branch = next((operand for operand in (x, y) if hasattr(operand, "dtype")), None)
    like = dtype(getattr(branch, "dtype", "float32"))
    branches = (operand if isinstance(operand, Tensor) else weak_array(operand, like) for operand in (x, y))
    return apply(SELECT, condition, *branches)


def matmul(a: TensorLike, b: Operand, transpose_a: bool = False, transpose_b: bool = False) -> TensorLike:
    """The matrix product; more than two dims are batches that broadcast (MatMul or BatchMatMul)."""
    op = MATMUL if rank_of(a) == 2 and rank_of(b) == 2 else BATCH_MATMUL
    return apply(op, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def gelu(x: TensorLike, approximate: str = "none") -> TensorLike:
    """x * Phi(x) through erf; ``approximate="tanh"`` is MindSpore's GeLU primitive."""
    if approximate == "tanh":
        return apply(activation.GELU_TANH, x)
    return apply(activation.GELU, x, approximate=approximate)


def squeeze(x: TensorLike, axis: Axes = None) -> TensorLike:
    """Without the given axes of extent 1; without all that are known to have it when none is given."""
    ones = tuple(index for index, dim in enumerate(x.shape) if dim == 1)
    axes = ones if axis is None else axes_of(as_ints(axis), rank_of(x))
    return apply(shapes.SQUEEZE, x, axis=axes) if axes else x


def concat(tensors: Sequence[Any], axis: int = 0) -> Any:  # Tensors give a Tensor, arrays an array
    """Joins along an axis."""
    return apply(pieces.CONCAT, *tensors, axis=axis_of(axis, rank_of(tensors[0])))


def split(x: TensorLike, sizes: int | Sequence[int], axis: int = 0) -> tuple[TensorLike, ...]:
    """Cuts an axis into parts of the given sizes; one int is the number of equal parts."""
    resolved = axis_of(axis, rank_of(x))
    return apply_all(pieces.SPLIT, x, axis=resolved, size_splits=split_sizes(x.shape[resolved], sizes))


def split_with_size(x: TensorLike, sizes: Sequence[int], axis: int = 0) -> tuple[TensorLike, ...]:
    """Cuts an axis into parts of the given sizes."""
    return apply_all(SPLIT_WITH_SIZE, x, split_sizes=tuple(sizes), axis=axis_of(axis, rank_of(x)))


def strided_slice(
    x: TensorLike, begin: Sequence[Dim], end: Sequence[Dim], strides: Sequence[int] | None = None, **masks: int
) -> TensorLike:
    """``begin:end:stride`` of every axis, counted from the front; with masks as MindSpore's StridedSlice reads them.

    The masks are ``begin_mask``, ``end_mask``, ``ellipsis_mask``, ``new_axis_mask`` and ``shrink_axis_mask``: bit i is
    about entry i. With any of them (0 counts) negative positions count from the end and axes without an entry stay whole.
    """
    steps = tuple(strides) if strides is not None else (1,) * len(begin)
    if masks:
        return _indexed(x, masked_key(begin, end, steps, masks))
    return apply(pieces.STRIDED_SLICE, x, begin=tuple(begin), end=tuple(end), strides=steps)


def _indexed(x: Any, key: Any) -> Any:  # a Tensor gives a Tensor, an array an array
    return x[key] if isinstance(x, Tensor) else np.asarray(x[key])


def reshape_ext(x: TensorLike, like: Sequence[Operand], shape: Sequence[Dim]) -> TensorLike:
    """The elements of ``x`` in a shape whose extents are those of the tensors ``like``, or computed from them."""
    positions = tuple(range(1, len(like) + 1))
    return apply(fused_shape.RESHAPE_EXT, x, *like, shape=tuple(shape), only_depend_shape=positions)


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


def extent(value: Dim, like: Tensor, dst_type: str | DType = "float32") -> Tensor:
    """A dim as a scalar of the trace that ``like`` belongs to: a constant when it is a number."""
    if not isinstance(value, Sym):
        return Tensor(like.builder.constant(value, dst_type), like.builder)
    node = like.builder.emit(creation.EXTENT, value=value, dst_type=dtype(dst_type).name)
    return Tensor(node, like.builder)


def send(x: Tensor, dest_rank: int, sr_tag: int = 0, group: str = "world", rank_size: int = 2) -> None:
    """Gives ``x`` to process ``dest_rank`` of a group of ``rank_size``, which receives with the same ``sr_tag``.

    In a trace only. Raises FrontendError for an array.
    """
    told = {"dest_rank": dest_rank, "sr_tag": sr_tag, "group": group, "rank_size": rank_size}
    record_in_turn(communication.SEND, _traced(x), (x,), told)


def receive(like: Tensor, src_rank: int, sr_tag: int = 0, group: str = "world", rank_size: int = 2) -> Tensor:
    """What ``src_rank`` of a group of ``rank_size`` sends with this ``sr_tag``, of the shape and data type of ``like``.

    In a trace only. Raises FrontendError for an array.
    """
    told = {"src_rank": src_rank, "sr_tag": sr_tag, "group": group, "rank_size": rank_size}
    kind = {"shape": like.shape, "dtype": like.dtype.name}
    return record_in_turn(communication.RECEIVE, _traced(like), (), told | kind)[0]


def _traced(x: object) -> Builder:
    if isinstance(x, Tensor):
        return x.builder
    raise FrontendError(f"who sends or receives has to be traced: a tensor is needed, got {type(x).__name__}")
