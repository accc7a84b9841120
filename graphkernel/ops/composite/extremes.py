"""The greatest or least element along an axis, together with where it is."""

from __future__ import annotations

from kernelgen.tensor.operator import Kind, Operator, Traits
from kernelgen.tensor.operators.attributes import axis, flag
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.reduce import ARGMAX, ARGMIN, REDUCE_MAX, REDUCE_MIN
from kernelgen.tensor.types import Attrs, TensorType, dtype

Types = tuple[TensorType, ...]

INDEX = dtype("int32")


def _with_value(name: str, position: Operator, value: Operator, doc: str) -> Operator:
    def rule(types: Types, attrs: Attrs) -> Types:
        position.infer(types, _position_attrs(attrs))
        (found,) = value.infer(types, value_attrs(attrs))
        return (TensorType(found.shape, INDEX), found)

    def meaning(x: Array, *, attrs: Attrs) -> tuple[Array, Array]:
        values = value.meaning(x, attrs=value_attrs(attrs))
        return position.meaning(x, attrs=_position_attrs(attrs)).reshape(values.shape), values

    return declare(
        name,
        Kind.REDUCE,
        1,
        rule,
        meaning,
        attributes=(axis(default=0), flag("keep_dims")),
        composite=True,
        doc=doc,
        traits=Traits(axis_of="operand"),
    )


def _position_attrs(attrs: Attrs) -> Attrs:
    return Attrs.of(axis=attrs.int("axis", 0))


def value_attrs(attrs: Attrs) -> Attrs:
    """The attributes of the reduction that gives the value."""
    return Attrs.of(axis=(attrs.int("axis", 0),), keep_dims=attrs.bool("keep_dims", False))


ARG_MAX_WITH_VALUE = _with_value(
    "ArgMaxWithValue", ARGMAX, REDUCE_MAX, "(index of the first maximum along axis as int32, the maximum)."
)
ARG_MIN_WITH_VALUE = _with_value(
    "ArgMinWithValue", ARGMIN, REDUCE_MIN, "(index of the first minimum along axis as int32, the minimum)."
)
