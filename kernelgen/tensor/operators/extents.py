"""``Extent``: the number that a dim is, as a scalar tensor. With it formulas can divide by a symbolic extent.

It has no operands and runs on the host: the value of a symbol is known as soon as the inputs are there, so this is one
scalar a call, made once however many rows use it. Where the dim is a number a constant does the same.
"""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.types import Attrs, Dim, Sym, TensorType, dtype

Types = tuple[TensorType, ...]


def _dim(attrs: Attrs) -> Dim:
    value = attrs.get("value")
    if not isinstance(value, int | Sym):
        raise TypeRuleError(f"value must be a dim, got {value!r}")
    return value


def _extent_type(types: Types, attrs: Attrs) -> Types:
    _dim(attrs)
    return (TensorType((), dtype(attrs.str("dst_type", "float32"))),)


def _extent(*, attrs: Attrs) -> Array:
    return np.asarray(_dim(attrs)).astype(dtype(attrs.str("dst_type", "float32")).numpy)


EXTENT = declare(
    "Extent",
    Kind.OPAQUE,
    0,
    _extent_type,
    _extent,
    attributes=("value", "dst_type"),
    doc="The dim value (a number or symbols) as a scalar of data type dst_type.",
)
