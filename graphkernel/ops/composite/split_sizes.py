"""SplitWithSize: MindSpore's name for a Split whose sizes differ."""

from __future__ import annotations

from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import axis, ints
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.pieces import SPLIT
from kernelgen.tensor.types import Attrs, TensorType


def as_split(attrs: Attrs) -> Attrs:
    """The attributes of the Split that does the same."""
    return Attrs.of(axis=attrs.int("axis", 0), size_splits=attrs.ints("split_sizes"))


def _type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    return SPLIT.infer(types, as_split(attrs))


def _meaning(x: Array, *, attrs: Attrs) -> tuple[Array, ...]:
    """As many results as there are split_sizes, cut along axis."""
    return SPLIT.meaning(x, attrs=as_split(attrs))


SPLIT_WITH_SIZE = declare(
    "SplitWithSize", Kind.OPAQUE, 1, _type, _meaning, attributes=(ints("split_sizes"), axis(default=0)), composite=True
)
