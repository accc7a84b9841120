"""``Places``: the places of an axis that indices mean, looked at before a kernel reads there.

A kernel that is given a place beyond its operand reads 0. What users give must rather be an error, which names the operator
that looks something up, and a negative index counts from the end.
"""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import plain
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.types import Attrs, Dim, TensorType, dtype

Types = tuple[TensorType, ...]
INDICES = (dtype("int32"), dtype("int64"))


def _places_type(types: Types, attrs: Attrs) -> Types:
    if types[0].dtype not in INDICES:
        raise TypeRuleError(f"indices are int32 or int64, got {types[0].dtype}")
    return types


def _places(indices: Array, *, attrs: Attrs) -> Array:
    """The places of an axis of so many elements: negative indices count from the end, others out of range are an error.

    Errors name the reader.
    """
    extent = attrs.int("extent")
    wrong = indices[(indices < -extent) | (indices >= extent)]
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for an axis of {extent} elements")
    return np.where(indices < 0, indices + extent, indices)


PLACES = declare(
    "Places",
    Kind.OPAQUE,
    1,
    _places_type,
    _places,
    attributes=(plain("extent", "Dim"), plain("reader", "str", "")),
    indices=(0,),
)


def is_provable(extent: Dim) -> bool:
    """Whether kernels can prove that a place lies within the extent: it is no product of symbols."""
    return isinstance(extent, int) or all(len(symbols) < 2 for symbols, _ in extent.terms)
