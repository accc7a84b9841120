"""Conversion between data types."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import data_type
from kernelgen.tensor.operators.families import Array, array_of, declare, widened
from kernelgen.tensor.types import Attrs, Category, TensorType, dtype, is_object


def _cast_type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    (x,) = types
    target = dtype(attrs.str("dst_type"))
    if is_object(x.dtype) or is_object(target):
        raise TypeRuleError("texts and values without a shape are no numbers")
    return (TensorType(x.shape, target, x.layout),)


def _cast(x: Array, *, attrs: Attrs) -> Array:
    """To the data type named by dst_type; floats truncate towards zero, bool tests != 0, of complex numbers the real
    part is taken."""
    target = dtype(attrs.str("dst_type"))
    if target.name == "bool":
        return widened(x) != 0
    kept = x if target.category is Category.COMPLEX else np.real(x)
    return array_of(kept.astype(target.numpy))


CAST = declare(
    "Cast",
    Kind.ELEMWISE,
    1,
    _cast_type,
    _cast,
    attributes=(data_type("dst_type"),),
    takes_opaque=True,  # numbers of four and eight bits, which nothing else here computes with
    traits=Traits(attribute_operands={1: "dst_type"}),
)
