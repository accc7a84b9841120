"""Operators that give elements another place or repeat them, without computing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import REQUIRED, Attribute, Kind, Traits
from kernelgen.tensor.operators.attributes import DIMS, INTS, as_ints, as_shape, axes, dims, resolved_shape, whole
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import (
    axes_of,
    axis_of,
    broadcast_shapes,
    shape_text,
)
from kernelgen.tensor.types import Attrs, Dim, Shape, TensorType, product

Types = tuple[TensorType, ...]


def _of_shape(x: TensorType, shape: Shape) -> Types:
    return (TensorType(shape, x.dtype),)


def _reshape_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    shape = attrs.dims("shape")
    if product(shape) != x.size:
        raise TypeRuleError(f"cannot give {x.size} elements the shape {shape_text(shape)} of {product(shape)} elements")
    return _of_shape(x, shape)


def _reshape(x: Array, *, attrs: Attrs) -> Array:
    """The same elements in row-major order in another shape; one extent may be -1, which is worked out."""
    return x.reshape(attrs.ints("shape"))


RESHAPED = Attribute("shape", DIMS, lambda shape, x: resolved_shape(x.shape, as_shape(shape)), REQUIRED)
RESHAPE = declare(
    "Reshape",
    Kind.RESHAPE,
    1,
    _reshape_type,
    _reshape,
    attributes=(RESHAPED,),
    traits=Traits(attribute_operands={1: "shape"}, moves=True, parts_alike=True),
)


def _new_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return axes_of(axes, rank + len(axes), empty_means_all=False)


def _expand_dims_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    new = _new_axes(attrs.ints("axis"), x.rank)
    rest = iter(x.shape)
    return _of_shape(x, tuple(1 if axis in new else next(rest) for axis in range(x.rank + len(new))))


def _expand_dims(x: Array, *, attrs: Attrs) -> Array:
    """New axes of extent 1 at the given positions of the result."""
    return np.expand_dims(x, attrs.ints("axis"))


NEW_AXES = Attribute("axis", INTS, lambda axis, x: _new_axes(as_ints(axis), x.rank), REQUIRED)
EXPAND_DIMS = declare(
    "ExpandDims",
    Kind.RESHAPE,
    1,
    _expand_dims_type,
    _expand_dims,
    attributes=(NEW_AXES,),
    composite=True,
    traits=Traits(attribute_operands={1: "axis"}, moves=True, parts_alike=True),
)


def _squeeze_axes(shape: Shape, attrs: Attrs) -> tuple[int, ...]:
    named = attrs.ints("axis", ())
    return axes_of(named, len(shape)) if named else tuple(axis for axis, dim in enumerate(shape) if dim == 1)


def _squeeze_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    if not attrs.ints("axis", ()) and not x.is_static:
        raise TypeRuleError("name the axes: an extent that is a symbol may turn out to be 1")
    gone = _squeeze_axes(x.shape, attrs)
    for axis in gone:
        if x.shape[axis] != 1:
            raise TypeRuleError(f"axis {axis} has extent {x.shape[axis]}, only extents of 1 can be squeezed")
    return _of_shape(x, tuple(dim for axis, dim in enumerate(x.shape) if axis not in gone))


def _squeeze(x: Array, *, attrs: Attrs) -> Array:
    """Without the given axes of extent 1; without all that are known to have it when none is given."""
    return np.squeeze(x, _squeeze_axes(x.shape, attrs))


SQUEEZE = declare(
    "Squeeze",
    Kind.RESHAPE,
    1,
    _squeeze_type,
    _squeeze,
    attributes=(axes(),),
    composite=True,
    traits=Traits(moves=True, parts_alike=True),
)


def _flatten_shape(shape: Shape, axis: int) -> Shape:
    split = axis if axis == len(shape) else axis_of(axis, len(shape))
    return (product(shape[:split]), product(shape[split:]))


def _flatten_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    return _of_shape(x, _flatten_shape(x.shape, attrs.int("axis", 1)))


def _flatten(x: Array, *, attrs: Attrs) -> Array:
    """To two dims: those before axis and those from axis on."""
    split = attrs.int("axis", 1) % (x.ndim + 1) if attrs.int("axis", 1) >= 0 else attrs.int("axis", 1) % x.ndim
    return x.reshape(int(np.prod(x.shape[:split])), int(np.prod(x.shape[split:])))


FLATTEN = declare(
    "Flatten",
    Kind.RESHAPE,
    1,
    _flatten_type,
    _flatten,
    attributes=(whole("axis", 1),),
    composite=True,
    traits=Traits(moves=True, parts_alike=True),
)


def transposed_shape(shape: Shape, perm: Sequence[int]) -> Shape:
    """The ``shape`` whose axis i is axis ``perm[i]`` of another. Raises TypeRuleError where perm is no permutation."""
    if sorted(axis % max(len(shape), 1) for axis in perm) != list(range(len(shape))):
        raise TypeRuleError(f"perm {tuple(perm)} is not a permutation of {len(shape)} axes")
    return tuple(shape[axis] for axis in perm)


def _transpose_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    return _of_shape(x, transposed_shape(x.shape, attrs.ints("perm")))


def _transpose(x: Array, *, attrs: Attrs) -> Array:
    """Result axis i is operand axis perm[i]; without perm the axes are reversed."""
    return np.transpose(x, attrs.ints("perm"))


def _order(perm: Sequence[int] | None, x: TensorType) -> tuple[int, ...]:
    return tuple(axis_of(axis, x.rank) for axis in (reversed(range(x.rank)) if perm is None else perm))


PERM = Attribute("perm", "Sequence[int] | None", _order, reads_none=True)
TRANSPOSE = declare(
    "Transpose",
    Kind.OPAQUE,
    1,
    _transpose_type,
    _transpose,
    attributes=(PERM,),
    traits=Traits(attribute_operands={1: "perm"}, moves=True),
    onnx="Transpose",
)


def _broadcast_to_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    shape = attrs.dims("shape")
    if x.rank > len(shape) or broadcast_shapes((x.shape, shape)) != shape:
        raise TypeRuleError(f"{shape_text(x.shape)} does not broadcast to {shape_text(shape)}")
    return _of_shape(x, shape)


def _broadcast_to(x: Array, *, attrs: Attrs) -> Array:
    """Repeats axes of extent 1; -1 keeps the operand's extent."""
    return np.broadcast_to(x, attrs.ints("shape"))


def _repeated(shape: Dim | Sequence[Dim], x: TensorType) -> Shape:
    wished = as_shape(shape)
    pairs = zip((1,) * (len(wished) - x.rank) + x.shape, wished, strict=False)  # the type rule refuses misfitting ranks
    return tuple(own if wish == -1 else wish for own, wish in pairs)


REPEATED = Attribute("shape", DIMS, _repeated, REQUIRED)
BROADCAST_TO = declare(
    "BroadcastTo",
    Kind.BROADCAST,
    1,
    _broadcast_to_type,
    _broadcast_to,
    attributes=(REPEATED,),
    traits=Traits(attribute_operands={1: "shape"}, moves=True, parts_alike=True),
)


def _tile_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    multiples = attrs.dims("multiples")
    if len(multiples) < x.rank:
        raise TypeRuleError(f"multiples {shape_text(multiples)} are fewer than the {x.rank} axes")
    shape = (1,) * (len(multiples) - x.rank) + x.shape
    return _of_shape(x, tuple(product(pair) for pair in zip(shape, multiples, strict=True)))


def _tile(x: Array, *, attrs: Attrs) -> Array:
    """Repeats the whole tensor along each axis."""
    return np.tile(x, attrs.ints("multiples"))


TILE = declare(
    "Tile",
    Kind.BROADCAST,
    1,
    _tile_type,
    _tile,
    attributes=(dims("multiples"),),
    composite=True,
    traits=Traits(attribute_operands={1: "multiples"}, moves=True),
)
