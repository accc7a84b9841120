"""Running sums and products along an axis; floats accumulate in float64."""

from __future__ import annotations

import numpy as np

from kernelgen.tensor.operator import Kind, Operator, Traits
from kernelgen.tensor.operators.attributes import axis, flag
from kernelgen.tensor.operators.families import Array, ArrayFunction, declare, is_floating
from kernelgen.tensor.operators.type_rules import axis_of, expect_dtype, number
from kernelgen.tensor.types import Attrs, TensorType

SCAN = (axis(), flag("exclusive"), flag("reverse"))


def _scan_type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    (x,) = types
    expect_dtype(number, x)
    axis_of(attrs.int("axis"), x.rank)
    return (x,)


def _scan(name: str, function: ArrayFunction, neutral: int, doc: str, traits: Traits) -> Operator:
    def meaning(x: Array, *, attrs: Attrs) -> Array:
        along = attrs.int("axis")
        reverse = attrs.bool("reverse", False)
        ordered = np.flip(x, along) if reverse else x
        wide = np.float64 if is_floating(x) else x.dtype
        found = function(ordered.astype(wide), along, dtype=wide)
        if attrs.bool("exclusive", False):
            found = np.roll(found, 1, along)
            np.moveaxis(found, along, 0)[:1] = neutral
        return (np.flip(found, along) if reverse else found).astype(x.dtype)

    return declare(name, Kind.OPAQUE, 1, _scan_type, meaning, attributes=SCAN, doc=doc, traits=traits)


HOW = "along axis; exclusive leaves the element itself out, reverse runs from the end."
CUM_SUM = _scan(
    "CumSum", np.cumsum, 0, f"The running sum {HOW}", Traits(attribute_operands={1: "axis"}, axis_of="operand")
)
CUM_PROD = _scan("CumProd", np.cumprod, 1, f"The running product {HOW}", Traits(axis_of="operand"))
