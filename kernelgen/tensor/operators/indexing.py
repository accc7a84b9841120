"""Operators whose result depends on index values."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import axis, plain
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import any_dtype, axis_of, expect_dtype, integer
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def _gather_type(types: Types, attrs: Attrs) -> Types:
    x, indices = types
    expect_dtype(integer, indices)
    along = axis_of(attrs.int("axis", 0), x.rank)
    return (TensorType((*x.shape[:along], *indices.shape, *x.shape[along + 1 :]), x.dtype),)


def _gather(x: Array, indices: Array, *, attrs: Attrs) -> Array:
    """The slices of axis at the indices; negative indices count from the end, others out of range are an error."""
    return np.take(x, indices, attrs.int("axis", 0))


GATHER = declare(
    "Gather",
    Kind.OPAQUE,
    2,
    _gather_type,
    _gather,
    attributes=(axis(default=0),),
    indices=(1,),
    traits=Traits(attribute_operands={2: "axis"}, axis_of="operand", moves=True),
    onnx="Gather",
)


def _one_hot_type(types: Types, attrs: Attrs) -> Types:
    indices, on_value, off_value = types
    expect_dtype(integer, indices)
    result = expect_dtype(any_dtype, on_value, off_value)
    if on_value.size != 1 or off_value.size != 1:
        raise TypeRuleError("on and off value must be scalars")
    new = axis_of(attrs.int("axis", -1), indices.rank + 1)
    (depth,) = attrs.dims("depth")
    return (TensorType((*indices.shape[:new], depth, *indices.shape[new:]), result),)


def _one_hot(indices: Array, on_value: Array, off_value: Array, *, attrs: Attrs) -> Array:
    """The on value where the position along the new axis equals the index, else the off value."""
    new = attrs.int("axis", -1) % (indices.ndim + 1)
    positions = np.arange(attrs.int("depth")).reshape([-1] + [1] * (indices.ndim - new))
    return np.where(np.expand_dims(indices, new) == positions, on_value.reshape(()), off_value.reshape(()))


ONE_HOT = declare(
    "OneHot",
    Kind.OPAQUE,
    3,
    _one_hot_type,
    _one_hot,
    attributes=(axis(default=-1, new=1), plain("depth", "Dim")),
    indices=(0,),
    traits=Traits(
        attribute_operands={1: "depth"},
        axis_of="result",
        moves=True,
        skips_outside=True,
        values_of=1,
        call=("indices", "depth", "on_value", "off_value", "axis"),
    ),
)
