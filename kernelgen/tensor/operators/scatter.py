"""Operators that read or write where an index tensor says.

An index out of range, negative ones included, reads 0 and writes nothing, as in AKG; Gather alone follows ONNX.
Floats add up in float64, so the order of equal indices does not show.
"""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import plain
from kernelgen.tensor.operators.families import Array, declare, is_floating
from kernelgen.tensor.operators.type_rules import any_dtype, expect_dtype, integer, number, shape_text, static
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def _address_depth(x: TensorType, indices: TensorType) -> int:
    """How many leading axes of x the last axis of the indices addresses."""
    expect_dtype(integer, indices)
    if indices.rank == 0:
        raise TypeRuleError("indices need rank 1 at least: their last axis is an address")
    depth = static(indices.shape[-1], "the last extent of the indices")
    if depth > x.rank:
        raise TypeRuleError(f"an address of {depth} numbers is too long for rank {x.rank}")
    return depth


def _gather_nd_type(types: Types, attrs: Attrs) -> Types:
    x, indices = types
    expect_dtype(any_dtype, x)
    return (TensorType((*indices.shape[:-1], *x.shape[_address_depth(x, indices) :]), x.dtype),)


def _gather_nd(x: Array, indices: Array, *, attrs: Attrs) -> Array:
    """The slices of x at the addresses that indices hold."""
    depth = indices.shape[-1]
    inside = _inside(indices, x.shape[:depth])
    found = np.zeros((*indices.shape[:-1], *x.shape[depth:]), x.dtype)
    found[inside] = x[tuple(indices[inside].T)]
    return found


GATHER_ND = declare(
    "GatherNd",
    Kind.OPAQUE,
    2,
    _gather_nd_type,
    _gather_nd,
    indices=(1,),
    traits=Traits(moves=True, parts_alike=True, skips_outside=True),
)


def _scatter_type(types: Types, attrs: Attrs) -> Types:
    x, indices, updates = types
    expect_dtype(number, x, updates)
    shape = (*indices.shape[:-1], *x.shape[_address_depth(x, indices) :])
    if updates.shape != shape:
        raise TypeRuleError(f"updates need the shape {shape_text(shape)}, got {shape_text(updates.shape)}")
    return (x,)


def _scatter_add(x: Array, indices: Array, updates: Array, *, attrs: Attrs) -> Array:
    """(x, indices, updates): x plus the updates at their addresses; equal addresses add up."""
    inside = _inside(indices, x.shape[: indices.shape[-1]])
    result = x.astype(_accumulator(x))
    if indices.shape[-1] == 0:  # each address is that of the whole tensor
        return (result + updates.reshape(-1, *x.shape).sum(axis=0, dtype=result.dtype)).astype(x.dtype)
    np.add.at(result, tuple(indices[inside].T), updates[inside].astype(result.dtype))
    return result.astype(x.dtype)


TENSOR_SCATTER_ADD = declare(
    "TensorScatterAdd",
    Kind.OPAQUE,
    3,
    _scatter_type,
    _scatter_add,
    indices=(1,),
    traits=Traits(parts_alike=True, skips_outside=True),
)


def _segment_type(types: Types, attrs: Attrs) -> Types:
    x, ids = types
    expect_dtype(number, x)
    expect_dtype(integer, ids)
    if ids.rank == 0 or ids.shape != x.shape[: ids.rank]:
        raise TypeRuleError(f"ids need leading extents of {shape_text(x.shape)}, got {shape_text(ids.shape)}")
    return (TensorType((*attrs.dims("num_segments"), *x.shape[ids.rank :]), x.dtype),)


def _segment_sum(x: Array, ids: Array, *, attrs: Attrs) -> Array:
    """(x, ids): result[s] is the sum of x[i] over all places i where ids[i] is s."""
    result = np.zeros((attrs.int("num_segments"), *x.shape[ids.ndim :]), _accumulator(x))
    inside = (ids >= 0) & (ids < len(result))
    np.add.at(result, ids[inside], x[inside].astype(result.dtype))
    return result.astype(x.dtype)


UNSORTED_SEGMENT_SUM = declare(
    "UnsortedSegmentSum",
    Kind.OPAQUE,
    2,
    _segment_type,
    _segment_sum,
    attributes=(plain("num_segments", "Dim"),),
    indices=(1,),
    traits=Traits(attribute_operands={2: "num_segments"}, parts_alike=True, skips_outside=True),
)


def _inside(indices: Array, extents: tuple[int, ...]) -> Array:
    """Whether each address is in range; ``indices`` has one number for each extent along its last axis."""
    return np.all((indices >= 0) & (indices < np.asarray(extents, np.int64)), axis=-1)


def _accumulator(x: Array) -> np.dtype:
    return np.dtype(np.float64) if is_floating(x) else x.dtype
