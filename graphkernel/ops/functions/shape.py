"""Python functions of the operators that move, cut, join or index elements; see :mod:`graphkernel.ops.functions.pointwise`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkernel.ops.tensor.apply import TensorLike, apply, apply_all
from graphkernel.ops.tensor.arguments import Axes, attribute_number, dims, ints, resolved_shape, split_sizes
from graphkernel.ops.tensor.tensor import Operand, Tensor, rank_of
from graphkernel.ops.tensor.weak_typing import weak_array
from kernelgen.tensor.operators import indexing, pieces
from kernelgen.tensor.operators import shape as shapes
from kernelgen.tensor.operators.slice_masks import masked_key
from kernelgen.tensor.operators.type_rules import axes_of, axis_of
from kernelgen.tensor.types import Dim, dtype


def reshape(x: TensorLike, shape: int | Sequence[Dim]) -> TensorLike:
    """The same elements in another shape; one extent may be -1, which is worked out."""
    return apply(shapes.RESHAPE, x, shape=resolved_shape(tuple(x.shape), dims(shape)))


def flatten(x: TensorLike, axis: int = 1) -> TensorLike:
    """To two dims: those before ``axis`` and those from it on."""
    return apply(shapes.FLATTEN, x, axis=axis)


def expand_dims(x: TensorLike, axis: int | Sequence[int]) -> TensorLike:
    """New axes of extent 1 at the given positions of the result."""
    axes = ints(axis)
    return apply(shapes.EXPAND_DIMS, x, axis=axes_of(axes, rank_of(x) + len(axes), empty_means_all=False))


def squeeze(x: TensorLike, axis: Axes = None) -> TensorLike:
    """Without the given axes of extent 1; without all that are known to have it when none is given."""
    ones = tuple(index for index, dim in enumerate(x.shape) if dim == 1)
    axes = ones if axis is None else axes_of(ints(axis), rank_of(x))
    return apply(shapes.SQUEEZE, x, axis=axes) if axes else x


def transpose(x: TensorLike, perm: Sequence[int] | None = None) -> TensorLike:
    """Result axis i is operand axis ``perm[i]``; without ``perm`` the axes are reversed."""
    rank = rank_of(x)
    order = tuple(reversed(range(rank))) if perm is None else tuple(axis_of(axis, rank) for axis in perm)
    return apply(shapes.TRANSPOSE, x, perm=order)


def broadcast_to(x: TensorLike, shape: int | Sequence[Dim]) -> TensorLike:
    """Repeats axes of extent 1; -1 keeps the operand's extent."""
    wished = dims(shape)
    own = (1,) * (len(wished) - rank_of(x)) + tuple(x.shape)
    pairs = zip(own, wished, strict=False)  # ranks that do not fit are for the type rule to refuse
    return apply(shapes.BROADCAST_TO, x, shape=tuple(mine if wish == -1 else wish for mine, wish in pairs))


def tile(x: TensorLike, multiples: int | Sequence[Dim]) -> TensorLike:
    """Repeats the whole tensor along each axis."""
    return apply(shapes.TILE, x, multiples=dims(multiples))


def concat(tensors: Sequence[Any], axis: int = 0) -> Any:  # Tensors give a Tensor, arrays an array
    """Joins along an axis."""
    return apply(pieces.CONCAT, *tensors, axis=axis_of(axis, rank_of(tensors[0])))


def split(x: TensorLike, sizes: int | Sequence[int], axis: int = 0) -> tuple[TensorLike, ...]:
    """Cuts an axis into parts of the given sizes; one int is the number of equal parts."""
    resolved = axis_of(axis, rank_of(x))
    return apply_all(pieces.SPLIT, x, axis=resolved, size_splits=split_sizes(x.shape[resolved], sizes))


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


def slice_(x: TensorLike, begin: Sequence[int], size: Sequence[Dim]) -> TensorLike:
    """``size`` elements from ``begin`` of every axis."""
    return apply(pieces.SLICE, x, begin=tuple(begin), size=tuple(size))


def pad(x: TensorLike, paddings: Sequence[tuple[int, int]], value: float = 0.0) -> TensorLike:
    """Puts ``value`` before and after each axis."""
    flat = tuple(amount for pair in paddings for amount in pair)
    return apply(pieces.PAD, x, paddings=flat, value=attribute_number(value, dtype(x.dtype)))


def gather(x: TensorLike, indices: Operand, axis: int = 0) -> TensorLike:
    """The slices of ``axis`` at the indices."""
    return apply(indexing.GATHER, x, indices, axis=axis_of(axis, rank_of(x)))


def one_hot(indices: TensorLike, depth: int, on_value: Operand, off_value: Operand, axis: int = -1) -> TensorLike:
    """The on value where the position along the new axis equals the index. Python scalars are float32."""
    values = (
        v if isinstance(v, Tensor | np.ndarray) else weak_array(v, dtype("float32")) for v in (on_value, off_value)
    )
    return apply(indexing.ONE_HOT, indices, *values, depth=depth, axis=axis_of(axis, rank_of(indices) + 1))
