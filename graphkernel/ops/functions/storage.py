"""Python functions of operators that create, split, pad and lay out; see :mod:`graphkernel.ops.functions.pointwise`."""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel.ops.composite import extremes, split_sizes, sums
from graphkernel.ops.library import linear_algebra
from graphkernel.ops.tensor.apply import TensorLike, apply, apply_all
from graphkernel.ops.tensor.arguments import Axes, attribute_number, dims, normal_axes
from graphkernel.ops.tensor.tensor import Operand, rank_of
from kernelgen.tensor.operators import creation, layout, padding, scan, scatter
from kernelgen.tensor.operators.type_rules import axis_of
from kernelgen.tensor.types import Dim, dtype


def shape_of(x: TensorLike) -> TensorLike:
    """The extents as an int64 tensor (the operator Shape)."""
    return apply(creation.SHAPE, x)


def fill_v2(value: TensorLike, shape: int | Sequence[Dim]) -> TensorLike:
    """One value in every element of a shape."""
    return apply(creation.FILL_V2, value, shape=dims(shape))


def constant_of_shape(extents: TensorLike, shape: int | Sequence[Dim], value: float = 0.0) -> TensorLike:
    """float32 ``value`` in every element; ``shape`` repeats what the tensor of extents holds."""
    return apply(creation.CONSTANT_OF_SHAPE, extents, shape=dims(shape), value=float(value))


def repeat_interleave_int(x: TensorLike, repeats: int, dim: int | None = None) -> TensorLike:
    """Each element ``repeats`` times in a row along ``dim``; without one the elements are flattened first."""
    axis = {} if dim is None else {"dim": axis_of(dim, rank_of(x))}
    return apply(creation.REPEAT_INTERLEAVE_INT, x, repeats=repeats, **axis)


def split_with_size(x: TensorLike, sizes: Sequence[int], axis: int = 0) -> tuple[TensorLike, ...]:
    """Cuts an axis into parts of the given sizes."""
    return apply_all(split_sizes.SPLIT_WITH_SIZE, x, split_sizes=tuple(sizes), axis=axis_of(axis, rank_of(x)))


def pad_akg(x: TensorLike, head: Sequence[int], tail: Sequence[int], pad_val: float = 0.0) -> TensorLike:
    """``head`` elements of ``pad_val`` before and ``tail`` behind each axis."""
    value = attribute_number(pad_val, dtype(x.dtype))
    return apply(padding.PAD_AKG, x, head=tuple(head), tail=tuple(tail), pad_val=value)


def un_pad_akg(x: TensorLike, tail: Sequence[int]) -> TensorLike:
    """Without the last ``tail`` elements of each axis."""
    return apply(padding.UNPAD_AKG, x, tail=tuple(tail))


def trans_data(x: TensorLike, src_format: str, dst_format: str, shape: int | Sequence[Dim] | None = None) -> TensorLike:
    """To FRACTAL_NZ, or back to a tensor of ``shape``."""
    cut = {} if shape is None else {"shape": dims(shape)}
    return apply(layout.TRANS_DATA, x, src_format=src_format, dst_format=dst_format, **cut)


def layout_transform(x: TensorLike, src_format: str, dst_format: str) -> TensorLike:
    """The same elements in another order of axes and blocks, such as NCHW to NCHW16c."""
    return apply(layout.LAYOUT_TRANSFORM, x, src_format=src_format, dst_format=dst_format)


def cum_prod(x: TensorLike, axis: int, exclusive: bool = False, reverse: bool = False) -> TensorLike:
    """The running product along an axis."""
    return apply(scan.CUM_PROD, x, axis=axis_of(axis, rank_of(x)), exclusive=exclusive, reverse=reverse)


def unsorted_segment_sum(x: TensorLike, ids: Operand, num_segments: Dim) -> TensorLike:
    """``result[s]`` is the sum of ``x[i]`` over all places i where ``ids[i]`` is s."""
    return apply(scatter.UNSORTED_SEGMENT_SUM, x, ids, num_segments=num_segments)


def sum_ext(x: TensorLike, axis: Axes = None, keep_dims: bool = False, dtype: str | None = None) -> TensorLike:
    """The sum over axes in another data type; without ``dtype`` bool and integers are added as int64."""
    wished = {} if dtype is None else {"dtype": dtype}
    return apply(sums.SUM_EXT, x, axis=normal_axes(axis, rank_of(x)), keep_dims=keep_dims, **wished)


def lu(x: TensorLike) -> tuple[TensorLike, TensorLike]:
    """(the factors L and U in one matrix, the permutation p) with ``x[p] = L @ U``."""
    factors, permutation = apply_all(linear_algebra.LU, x)
    return factors, permutation


def square_sum_all(x: TensorLike, y: Operand) -> tuple[TensorLike, TensorLike]:
    """(the sum of x * x, the sum of y * y)."""
    first, second = apply_all(sums.SQUARE_SUM_ALL, x, y)
    return first, second


def arg_max_with_value(x: TensorLike, axis: int = 0, keep_dims: bool = False) -> tuple[TensorLike, TensorLike]:
    """(index of the first maximum along an axis, the maximum)."""
    index, value = apply_all(extremes.ARG_MAX_WITH_VALUE, x, axis=axis_of(axis, rank_of(x)), keep_dims=keep_dims)
    return index, value


def arg_min_with_value(x: TensorLike, axis: int = 0, keep_dims: bool = False) -> tuple[TensorLike, TensorLike]:
    """(index of the first minimum along an axis, the minimum)."""
    index, value = apply_all(extremes.ARG_MIN_WITH_VALUE, x, axis=axis_of(axis, rank_of(x)), keep_dims=keep_dims)
    return index, value
