"""Operators that cut tensors into pieces and join pieces to tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import REQUIRED, Attribute, Kind, Traits
from kernelgen.tensor.operators.attributes import axis, dims, element, ints
from kernelgen.tensor.operators.families import Array, declare, scalar_of
from kernelgen.tensor.operators.type_rules import any_dtype, axis_of, expect_dtype, static, surely_nonnegative
from kernelgen.tensor.types import Attrs, Dim, Shape, Sym, TensorType, dtype

Types = tuple[TensorType, ...]


def _of_shape(x: TensorType, shape: Shape) -> Types:
    return (TensorType(shape, x.dtype),)


def concatenated_shape(shapes: Sequence[Shape], axis: int) -> Shape:
    """The shape of operands of these ``shapes``, one at least, in a row along ``axis``, which is not negative.

    Raises TypeRuleError where they differ elsewhere.
    """
    before, after = shapes[0][:axis], shapes[0][axis + 1 :]
    total: Dim = 0
    for shape in shapes:
        if shape[:axis] != before or shape[axis + 1 :] != after or len(shape) != len(shapes[0]):
            raise TypeRuleError(f"operands may differ in axis {axis} only")
        total = total + shape[axis]
    return (*before, total, *after)


def _concat_type(types: Types, attrs: Attrs) -> Types:
    if not types:
        raise TypeRuleError("needs at least one operand")
    expect_dtype(any_dtype, *types)
    along = axis_of(attrs.int("axis"), types[0].rank)
    return _of_shape(types[0], concatenated_shape([type_.shape for type_ in types], along))


def _concat(*arrays: Array, attrs: Attrs) -> Array:
    return np.concatenate(arrays, attrs.int("axis"))


CONCAT = declare(
    "Concat",
    Kind.OPAQUE,
    None,
    _concat_type,
    _concat,
    attributes=(axis(default=0),),
    traits=Traits(axis_of="operand", moves=True),
    onnx="Concat",
)


def _split_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    along, sizes = axis_of(attrs.int("axis"), x.rank), attrs.ints("size_splits")
    extent = static(x.shape[along], f"the extent of axis {along}")
    if sum(sizes) != extent:
        raise TypeRuleError(f"size_splits {sizes} add up to {sum(sizes)}, axis {along} has extent {extent}")
    return tuple(TensorType((*x.shape[:along], size, *x.shape[along + 1 :]), x.dtype) for size in sizes)


def _split(x: Array, *, attrs: Attrs) -> tuple[Array, ...]:
    """As many results as there are size_splits; equal parts are spelled out."""
    return tuple(np.split(x, np.cumsum(attrs.ints("size_splits"))[:-1], attrs.int("axis")))


SPLIT = declare(
    "Split",
    Kind.OPAQUE,
    1,
    _split_type,
    _split,
    attributes=(axis(default=0), ints("size_splits")),
    traits=Traits(axis_of="operand", moves=True),
)


def _strided_slice_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    begin, end, strides = attrs.dims("begin"), attrs.dims("end"), attrs.ints("strides")
    if not len(begin) == len(end) == len(strides) == x.rank:
        raise TypeRuleError(f"begin, end and strides need one entry for each of the {x.rank} axes")
    return _of_shape(x, tuple(_slice_extent(*part) for part in zip(x.shape, begin, end, strides, strict=True)))


def _slice_extent(extent: Dim, begin: Dim, end: Dim, stride: int) -> Dim:
    """The number of elements of ``begin:end:stride`` when both ends lie within the extent."""
    if stride == 0:
        raise TypeRuleError("a stride must not be 0")
    if isinstance(extent, Sym) or isinstance(begin, Sym) or isinstance(end, Sym):
        if stride != 1 or not all(surely_nonnegative(dim) for dim in (begin, end - begin, extent - end)):
            raise TypeRuleError(f"slice {begin}:{end}:{stride} may leave the symbolic extent {extent}")
        return end - begin
    lowest = -1 if stride < 0 else 0
    if not (0 <= begin <= extent and lowest <= end <= extent):
        raise TypeRuleError(f"slice {begin}:{end}:{stride} leaves the extent {extent}; count from the front")
    return max(0, -(-(end - begin) // stride))


def _strided_slice(x: Array, *, attrs: Attrs) -> Array:
    """begin:end:stride of every axis, counted from the front; end -1 lies before the first element."""
    parts = zip(attrs.ints("begin"), attrs.ints("end"), attrs.ints("strides"), strict=True)
    return x[tuple(slice(begin, None if end < 0 else end, stride) for begin, end, stride in parts)]


STRIDED_SLICE = declare(
    "StridedSlice",
    Kind.OPAQUE,
    1,
    _strided_slice_type,
    _strided_slice,
    attributes=(dims("begin"), dims("end"), ints("strides")),
    traits=Traits(attribute_operands={1: "begin", 2: "end", 3: "strides"}, moves=True),
)


def _slice_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    begin, size = attrs.ints("begin"), attrs.dims("size")
    if not len(begin) == len(size) == x.rank:
        raise TypeRuleError(f"begin and size need one entry for each of the {x.rank} axes")
    for extent, first, count in zip(x.shape, begin, size, strict=True):
        inside = first >= 0 and surely_nonnegative(extent - count - first)
        if not inside or not surely_nonnegative(count):
            raise TypeRuleError(f"{count} elements from {first} leave the extent {extent}")
    return _of_shape(x, size)


def _slice(x: Array, *, attrs: Attrs) -> Array:
    """size elements from begin of every axis."""
    parts = zip(attrs.ints("begin"), attrs.ints("size"), strict=True)
    return x[tuple(slice(begin, begin + size) for begin, size in parts)]


SLICE = declare(
    "Slice", Kind.OPAQUE, 1, _slice_type, _slice, attributes=(ints("begin"), dims("size")), traits=Traits(moves=True)
)


def _pad_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    paddings = _pairs(attrs)
    if len(paddings) != x.rank:
        raise TypeRuleError(f"paddings need a pair for each of the {x.rank} axes")
    if min((amount for pair in paddings for amount in pair), default=0) < 0:
        raise TypeRuleError("paddings must not be negative; use StridedSlice to cut")
    scalar_of(attrs, "value", x.dtype, 0)
    return _of_shape(x, tuple(dim + sum(pair) for dim, pair in zip(x.shape, paddings, strict=True)))


def _pad(x: Array, *, attrs: Attrs) -> Array:
    """Puts value before and behind each axis; paddings is (before, after) of each, which the operator holds
    flattened."""
    value = np.asarray(scalar_of(attrs, "value", dtype(x.dtype), 0)).astype(x.dtype)
    return np.pad(x, _pairs(attrs), constant_values=value)


def _pairs(attrs: Attrs) -> tuple[tuple[int, int], ...]:
    flat = attrs.ints("paddings")
    return tuple(zip(flat[0::2], flat[1::2], strict=True))


PADDINGS = Attribute(
    "paddings",
    "Sequence[tuple[int, int]]",
    lambda pairs, x: tuple(amount for pair in pairs for amount in pair),
    REQUIRED,
)
PAD = declare("Pad", Kind.OPAQUE, 1, _pad_type, _pad, attributes=(PADDINGS, element("value", 0.0)))
