"""Reshapes whose extents come from a tensor, or from the shapes of others.

Source: MindSpore's Reshape with a shape that is computed, and ReshapeExt, which computes it on the way.
"""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import dims, ints
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.operators.type_rules import shape_text
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def _only_shape(attrs: Attrs) -> Attrs:
    return Attrs.of(shape=attrs.dims("shape"))


def _dynamic_type(types: Types, attrs: Attrs) -> Types:
    x, extents = types
    if not extents.dtype.is_integer or extents.shape != (len(attrs.dims("shape")),):
        raise TypeRuleError(f"the second operand must hold the extents of {shape_text(attrs.dims('shape'))}")
    return RESHAPE.infer((x,), _only_shape(attrs))


def _dynamic(x: Array, extents: Array, *, attrs: Attrs) -> Array:
    """(x, extents) -> x in the shape that extents holds; the attribute shape repeats them for the type."""
    return np.asarray(RESHAPE.meaning(x, attrs=_only_shape(attrs)))


DYNAMIC_RESHAPE = declare(
    "DynamicReshape", Kind.OPAQUE, 2, _dynamic_type, _dynamic, attributes=(dims(),), composite=True
)


def _ext_type(types: Types, attrs: Attrs) -> Types:
    if not types:
        raise TypeRuleError("takes x and the tensors of which only the shapes matter")
    if attrs.ints("only_depend_shape", ()) != tuple(range(1, len(types))):
        raise TypeRuleError("only_depend_shape must name every operand but the first")
    return RESHAPE.infer(types[:1], _only_shape(attrs))


def _ext(x: Array, *like: Array, attrs: Attrs) -> Array:
    """(x, *like) -> x in a shape of extents that are polynomials of those of like; no content of like is read."""
    return np.asarray(RESHAPE.meaning(x, attrs=_only_shape(attrs)))


RESHAPE_EXT = declare(
    "ReshapeExt", Kind.RESHAPE, None, _ext_type, _ext, attributes=(dims(), ints("only_depend_shape")), composite=True
)
