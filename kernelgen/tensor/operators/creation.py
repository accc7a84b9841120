"""Operators about shapes: they tell one, fill one, or repeat into one. Shapes are attributes, so dims may be symbols."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import axis, data_type, dims, plain, real_number, whole
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import axis_of, expect_dtype, integer, shape_text, surely_nonnegative
from kernelgen.tensor.types import Attrs, Dim, DType, Shape, Sym, TensorType, dtype, product

Types = tuple[TensorType, ...]


def _shape_type(types: Types, attrs: Attrs) -> Types:
    return (TensorType((types[0].rank,), dtype("int64")),)


def _shape(x: Array, *, attrs: Attrs) -> Array:
    """The extents, as an int64 tensor."""
    return np.asarray(x.shape, np.int64)


SHAPE = declare("Shape", Kind.OPAQUE, 1, _shape_type, _shape, onnx="Shape")


def _wished(attrs: Attrs) -> Shape:
    shape = attrs.dims("shape")
    if not all(map(surely_nonnegative, shape)):
        raise TypeRuleError(f"the extents of {shape_text(shape)} must not be negative")
    return shape


def _fill_type(types: Types, attrs: Attrs) -> Types:
    (value,) = types
    if value.size != 1:
        raise TypeRuleError(f"the value must be one element, got {value}")
    return (TensorType(_wished(attrs), value.dtype),)


def _fill(value: Array, *, attrs: Attrs) -> Array:
    """One value in every element of shape."""
    return np.full(attrs.ints("shape"), value.reshape(()))


FILL_V2 = declare("FillV2", Kind.BROADCAST, 1, _fill_type, _fill, attributes=(dims(),), composite=True)


def _constant_type(types: Types, attrs: Attrs) -> Types:
    (extents,) = types
    shape = _wished(attrs)
    expect_dtype(integer, extents)
    if extents.shape != (len(shape),):
        raise TypeRuleError(f"the operand must hold the {len(shape)} extents of {shape_text(shape)}, got {extents}")
    return (TensorType(shape, _element(attrs)),)


def _constant(extents: Array, *, attrs: Attrs) -> Array:
    """value in every element, of data type dtype (float32). The operand holds the extents; the attribute shape repeats
    them for the type."""
    return np.full(attrs.ints("shape"), attrs.number("value", 0.0)).astype(_element(attrs).numpy)


def _element(attrs: Attrs) -> DType:
    return dtype(attrs.str("dtype", "float32"))


CONSTANT_OF_SHAPE = declare(
    "ConstantOfShape",
    Kind.OPAQUE,
    1,
    _constant_type,
    _constant,
    attributes=(dims(), real_number("value", 0.0), data_type("dtype", None)),
    composite=True,
)


def _zeros_like_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    return (TensorType(x.shape, dtype(attrs.str("dtype", x.dtype.name)), x.layout),)


def _zeros_like(x: Array, *, attrs: Attrs) -> Array:
    """Zeros of the operand's shape; dtype is another data type than the operand's."""
    return np.zeros(x.shape, dtype(attrs.str("dtype", dtype(x.dtype).name)).numpy)


ZEROS_LIKE_EXT = declare(
    "ZerosLikeExt",
    Kind.ELEMWISE,
    1,
    _zeros_like_type,
    _zeros_like,
    attributes=(data_type("dtype", None),),
    composite=True,
)


def _repeat_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    repeats = attrs.int("repeats")
    if repeats < 0:
        raise TypeRuleError(f"repeats must not be negative, got {repeats}")
    if "dim" not in attrs:
        return (TensorType((product(x.shape) * repeats,), x.dtype),)
    axis = axis_of(attrs.int("dim"), x.rank)
    return (TensorType((*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]), x.dtype),)


def _repeat(x: Array, *, attrs: Attrs) -> Array:
    """Each element repeats times in a row along dim; without dim the elements are flattened first."""
    return np.repeat(x, attrs.int("repeats"), attrs.int("dim") if "dim" in attrs else None)


REPEAT_INTERLEAVE_INT = declare(
    "RepeatInterleaveInt",
    Kind.BROADCAST,
    1,
    _repeat_type,
    _repeat,
    attributes=(whole("repeats"), axis("dim", None)),
    composite=True,
)


# Extent: with it formulas can divide by a symbolic extent. It has no operands and runs on the host: the value of a symbol is
# known as soon as the inputs are there, so this is one scalar a call. Where the dim is a number a constant does the same.


def _dim(attrs: Attrs) -> Dim:
    value = attrs.get("value")
    if not isinstance(value, int | Sym):
        raise TypeRuleError(f"value must be a dim, got {value!r}")
    return value


def _extent_type(types: Types, attrs: Attrs) -> Types:
    _dim(attrs)
    return (TensorType((), dtype(attrs.str("dst_type", "float32"))),)


def _extent(*, attrs: Attrs) -> Array:
    """The dim value (a number or symbols) as a scalar of data type dst_type."""
    return np.asarray(_dim(attrs)).astype(dtype(attrs.str("dst_type", "float32")).numpy)


EXTENT = declare(
    "Extent",
    Kind.OPAQUE,
    0,
    _extent_type,
    _extent,
    attributes=(plain("value", "Dim"), data_type("dst_type", "float32")),
)
