"""Operators that read or write where other operands say. Indices out of range read 0 and write nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.desc import OpDesc
from kernelgen.desc_rules import normal_axis
from kernelgen.meaning.algebra import Array
from kernelgen.meaning.shape import result_shape


def gather(operands: Sequence[Array], op: OpDesc) -> Array:
    """Slices of the data along ``axis`` at the ids."""
    data, ids = operands
    axis = normal_axis(op.attrs.int("axis", 0), data.ndim)
    found = np.take(data, np.clip(ids, 0, max(data.shape[axis] - 1, 0)), axis=axis)
    inside = _inside(ids, data.shape[axis]).reshape((1,) * axis + ids.shape + (1,) * (data.ndim - axis - 1))
    return np.where(inside, found, np.zeros((), data.dtype))


def gather_nd(operands: Sequence[Array], op: OpDesc) -> Array:
    """The last dim of the ids addresses the first dims of the data."""
    data, ids = operands
    places, inside = _addresses(ids, data.shape)
    found = data[places]
    return np.where(inside.reshape(inside.shape + (1,) * (found.ndim - inside.ndim)), found, np.zeros((), data.dtype))


def tensor_scatter_add(operands: Sequence[Array], op: OpDesc) -> Array:
    """The data plus the updates at the ids; repeated ids add up."""
    data, ids, updates = operands
    places, inside = _addresses(ids, data.shape)
    result = data.astype(_wide(data))
    np.add.at(result, tuple(place[inside] for place in places), updates[inside])
    return result


def unsorted_segment_sum(operands: Sequence[Array], op: OpDesc) -> Array:
    """``result[ids[i], ...] += data[i, ...]`` where i runs over all dims of the ids."""
    data, ids = operands
    result = np.zeros(result_shape(op), _wide(data))
    inside = _inside(ids, result.shape[0])
    np.add.at(result, ids[inside], data[inside])
    return result


def one_hot(operands: Sequence[Array], op: OpDesc) -> Array:
    """``on`` where the position along the new ``axis`` equals the id, else ``off``; a negative id gives ``off``."""
    ids, on, off = operands
    axis = normal_axis(op.attrs.int("axis", -1), ids.ndim + 1)
    depth = op.attrs.int("depth") if "depth" in op.attrs else result_shape(op)[axis]
    positions = np.arange(depth).reshape((depth,) + (1,) * (ids.ndim - axis))
    return np.where(np.expand_dims(ids, axis) == positions, on.reshape(()), off.reshape(()))


def _inside(ids: Array, extent: int) -> Array:
    return (ids >= 0) & (ids < extent)


def _addresses(ids: Array, shape: tuple[int, ...]) -> tuple[tuple[Array, ...], Array]:
    """One index array per addressed dim, clipped into range, and where all of them were in range."""
    depth = ids.shape[-1]
    inside = np.logical_and.reduce([_inside(ids[..., d], shape[d]) for d in range(depth)])
    return tuple(np.clip(ids[..., d], 0, shape[d] - 1) for d in range(depth)), inside


def _wide(data: Array) -> type:
    return np.float64 if data.dtype.kind not in "iub" else data.dtype.type
