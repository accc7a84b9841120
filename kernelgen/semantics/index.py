"""Operators that read or write where other operands say. Indices out of range read 0 and write nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.semantics.algebra import Array
from kernelgen.semantics.shape import result_shape
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.type_rules import normal_axis


def gather(operands: Sequence[Array], node: Application) -> Array:
    """Slices of the data along ``axis`` at the ids."""
    data, ids = operands
    axis = normal_axis(node.attrs.int("axis", 0), data.ndim)
    if data.shape[axis] == 0:
        return np.zeros(result_shape(node), data.dtype)
    found = np.take(data, np.clip(ids, 0, data.shape[axis] - 1), axis=axis)
    inside = _inside(ids, data.shape[axis]).reshape((1,) * axis + ids.shape + (1,) * (data.ndim - axis - 1))
    return np.where(inside, found, np.zeros((), data.dtype))


def gather_nd(operands: Sequence[Array], node: Application) -> Array:
    """The last dim of the ids addresses the first dims of the data."""
    data, ids = operands
    if data.size == 0:
        return np.zeros(result_shape(node), data.dtype)
    places, inside = _addresses(ids, data.shape)
    found = data[places] if places else np.broadcast_to(data, (*inside.shape, *data.shape))
    return np.where(inside.reshape(inside.shape + (1,) * (found.ndim - inside.ndim)), found, np.zeros((), data.dtype))


def tensor_scatter_add(operands: Sequence[Array], node: Application) -> Array:
    """The data plus the updates at the ids; repeated ids add up."""
    data, ids, updates = operands
    places, inside = _addresses(ids, data.shape)
    result = data.astype(wide_sum(data))
    if not places:  # each id is that of the whole
        return result + updates.reshape(-1, *data.shape).sum(axis=0, dtype=result.dtype)
    np.add.at(result, tuple(place[inside] for place in places), updates[inside])
    return result


def unsorted_segment_sum(operands: Sequence[Array], node: Application) -> Array:
    """``result[ids[i], ...] += data[i, ...]`` where i runs over all dims of the ids."""
    data, ids = operands
    result = np.zeros(result_shape(node), wide_sum(data))
    inside = _inside(ids, result.shape[0])
    np.add.at(result, ids[inside], data[inside])
    return result


def one_hot(operands: Sequence[Array], node: Application) -> Array:
    """``on`` where the position along the new ``axis`` equals the id, else ``off``; a negative id gives ``off``."""
    ids, on, off = operands
    axis = normal_axis(node.attrs.int("axis", -1), ids.ndim + 1)
    depth = node.attrs.int("depth") if "depth" in node.attrs else result_shape(node)[axis]
    positions = np.arange(depth).reshape((depth,) + (1,) * (ids.ndim - axis))
    return np.where(np.expand_dims(ids, axis) == positions, on.reshape(()), off.reshape(()))


def _inside(ids: Array, extent: int) -> Array:
    return (ids >= 0) & (ids < extent)


def _addresses(ids: Array, shape: tuple[int, ...]) -> tuple[tuple[Array, ...], Array]:
    """One index array per addressed dim, clipped into range, and where all of them were in range."""
    depth = ids.shape[-1]
    inside = np.ones(ids.shape[:-1], bool)
    for d in range(depth):
        inside &= _inside(ids[..., d], shape[d])
    return tuple(np.clip(ids[..., d], 0, shape[d] - 1) for d in range(depth)), inside


def wide_sum(data: Array) -> np.dtype:
    """The data type that elements of an array are added up in: floats in float64, all else in its own."""
    return data.dtype if data.dtype.kind in "biuc" else np.dtype(np.float64)
