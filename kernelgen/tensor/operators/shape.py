"""Operators that give elements another place or repeat them, without computing."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import (
    axes_of,
    axis_of,
    broadcast_shapes,
    shape_text,
)
from kernelgen.tensor.types import Attrs, Shape, TensorType, product

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
    return x.reshape(attrs.ints("shape"))


RESHAPE = declare(
    "Reshape",
    Kind.RESHAPE,
    1,
    _reshape_type,
    _reshape,
    attributes=("shape",),
    doc="The same elements in row-major order; every extent of shape is given (no -1).",
    traits=Traits(attribute_operands={1: "shape"}, moves=True, parts_alike=True),
)


def _expand_dims_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    axes = axes_of(attrs.ints("axis"), x.rank + len(attrs.ints("axis")), empty_means_all=False)
    rest = iter(x.shape)
    return _of_shape(x, tuple(1 if axis in axes else next(rest) for axis in range(x.rank + len(axes))))


def _expand_dims(x: Array, *, attrs: Attrs) -> Array:
    return np.expand_dims(x, attrs.ints("axis"))


EXPAND_DIMS = declare(
    "ExpandDims",
    Kind.RESHAPE,
    1,
    _expand_dims_type,
    _expand_dims,
    attributes=("axis",),
    composite=True,
    traits=Traits(attribute_operands={1: "axis"}, moves=True, parts_alike=True),
)


def _squeeze_axes(shape: Shape, attrs: Attrs) -> tuple[int, ...]:
    axes = attrs.ints("axis", ())
    return axes_of(axes, len(shape)) if axes else tuple(axis for axis, dim in enumerate(shape) if dim == 1)


def _squeeze_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    if not attrs.ints("axis", ()) and not x.is_static:
        raise TypeRuleError("name the axes: an extent that is a symbol may turn out to be 1")
    axes = _squeeze_axes(x.shape, attrs)
    for axis in axes:
        if x.shape[axis] != 1:
            raise TypeRuleError(f"axis {axis} has extent {x.shape[axis]}, only extents of 1 can be squeezed")
    return _of_shape(x, tuple(dim for axis, dim in enumerate(x.shape) if axis not in axes))


def _squeeze(x: Array, *, attrs: Attrs) -> Array:
    return np.squeeze(x, _squeeze_axes(x.shape, attrs))


SQUEEZE = declare(
    "Squeeze",
    Kind.RESHAPE,
    1,
    _squeeze_type,
    _squeeze,
    attributes=("axis",),
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
    split = attrs.int("axis", 1) % (x.ndim + 1) if attrs.int("axis", 1) >= 0 else attrs.int("axis", 1) % x.ndim
    return x.reshape(int(np.prod(x.shape[:split])), int(np.prod(x.shape[split:])))


FLATTEN = declare(
    "Flatten",
    Kind.RESHAPE,
    1,
    _flatten_type,
    _flatten,
    attributes=("axis",),
    composite=True,
    doc="To two dims: those before axis and those from axis on.",
    traits=Traits(moves=True, parts_alike=True),
)


def _transpose_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    perm = attrs.ints("perm")
    if sorted(axis % max(x.rank, 1) for axis in perm) != list(range(x.rank)):
        raise TypeRuleError(f"perm {perm} is not a permutation of {x.rank} axes")
    return _of_shape(x, tuple(x.shape[axis] for axis in perm))


def _transpose(x: Array, *, attrs: Attrs) -> Array:
    return np.transpose(x, attrs.ints("perm"))


TRANSPOSE = declare(
    "Transpose",
    Kind.OPAQUE,
    1,
    _transpose_type,
    _transpose,
    attributes=("perm",),
    doc="Result axis i is operand axis perm[i].",
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
    return np.broadcast_to(x, attrs.ints("shape"))


BROADCAST_TO = declare(
    "BroadcastTo",
    Kind.BROADCAST,
    1,
    _broadcast_to_type,
    _broadcast_to,
    attributes=("shape",),
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
    return np.tile(x, attrs.ints("multiples"))


TILE = declare(
    "Tile",
    Kind.BROADCAST,
    1,
    _tile_type,
    _tile,
    attributes=("multiples",),
    composite=True,
    traits=Traits(attribute_operands={1: "multiples"}, moves=True),
)
