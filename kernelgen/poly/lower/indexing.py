"""Operators whose places come from data: Gather, GatherNd, scatters, OneHot.

A place out of range reads 0 and adds nothing. It is clamped into the buffer and its value is not used, so bounds are
proved for all data, and the condition is a scalar like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import Expr, Index, IndexValue, Num, ValueIndex
from kernelgen.poly.lower.builder import ALGEBRA, Builder, inside, where
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, nearest_place
from kernelgen.poly.model.factored_axes import DimAxes, TensorAxes
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import INT64
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.type_rules import normal_axis, single_axis


def held_place(number: Expr, extent: Dim) -> tuple[Expr, Index]:
    """Whether a number read from data is a place of a dim, and the nearest place."""
    place = ValueIndex(number)
    return inside(place, extent), nearest_place(place, extent)


def _pair(axes: TensorAxes, left: DimAxes, right: DimAxes, node: Node) -> None:
    if len(left) != len(right):
        raise UnsupportedError("defective-input", f"{node.op.name}: the result's rank does not fit the operands")
    axes.pair(left, right, node)


# ---------------------------------------------------------------- Gather


def _relate_gather(axes: TensorAxes, node: Node) -> None:
    data, ids, result = (axes.of(t) for t in (*node.args[:2], node.out))
    axis = single_axis(node, 0)
    axes.hold(data[axis])
    if node.args[1].constant is not None:
        ids = (None,) * len(ids)
    if len(result) == len(data) - 1 + len(ids):
        axes.pair((*data[:axis], *ids, *data[axis + 1 :]), result, node)
    else:  # ids of one element, described without their dim
        _pair(axes, (*data[:axis], *data[axis + 1 :]), result, node)


def _gather(builder: Builder, node: Node, name: str) -> None:
    """``out[a, i, b] = data[a, ids[i], b]``."""
    data, ids = node.args[:2]
    axis, points = single_axis(node, 0), builder.points(node.out)
    count = len(node.out.shape) - len(data.shape) + 1
    groups: list[Place] = list(points.groups)
    chosen = groups[axis : axis + count] if count else [Num(0)] * len(ids.shape)
    if data.shape[axis] == 0:
        builder.define(node.out, points, ALGEBRA.literal(0, data.dtype), name)
        return
    valid, place = held_place(builder.at(ids, chosen), data.shape[axis])
    value = builder.at(data, [*groups[:axis], place, *groups[axis + count :]])
    builder.define(node.out, points, where((valid,), value, ALGEBRA.literal(0, data.dtype)), name)


# ---------------------------------------------------------------- GatherNd and TensorScatterAdd


def _depth(node: Node) -> int:
    """How many dims of the data an entry of the ids addresses."""
    depth = node.args[1].shape[-1]
    if not isinstance(depth, int):
        raise UnsupportedError("unsupported-layout", f"{node.op.name}: the ids' last extent {depth} must be known")
    return depth


def _relate_nd(axes: TensorAxes, node: Node, whole: Value, slices: Value) -> None:
    ids = axes.of(node.args[1])
    _pair(axes, (*ids[:-1], *axes.of(whole)[_depth(node) :]), axes.of(slices), node)
    axes.hold(ids[-1], *axes.of(whole)[: _depth(node)])


def _entries(builder: Builder, node: Node, whole: Value, groups: Sequence[Place]) -> tuple[list[Expr], list[Place]]:
    """The conditions and places of one entry of the ids."""
    conditions: list[Expr] = []
    places: list[Place] = []
    for d in range(_depth(node)):
        valid, place = held_place(builder.at(node.args[1], [*groups, Num(d)]), whole.shape[d])
        conditions.append(valid)
        places.append(place)
    return conditions, places


def _relate_gather_nd(axes: TensorAxes, node: Node) -> None:
    _relate_nd(axes, node, node.args[0], node.out)


def _gather_nd(builder: Builder, node: Node, name: str) -> None:
    """``out[i, b] = data[ids[i, 0], ids[i, 1], ..., b]``."""
    data, points = node.args[0], builder.points(node.out)
    if any(dim == 0 for dim in data.shape):
        builder.define(node.out, points, ALGEBRA.literal(0, data.dtype), name)
        return
    count = len(node.args[1].shape) - 1
    conditions, places = _entries(builder, node, data, points.groups[:count])
    value = builder.at(data, [*places, *points.groups[count:]])
    builder.define(node.out, points, where(conditions, value, ALGEBRA.literal(0, data.dtype)), name)


def _relate_scatter(axes: TensorAxes, node: Node) -> None:
    _relate_nd(axes, node, node.args[0], node.args[2])
    _pair(axes, axes.of(node.args[0]), axes.of(node.out), node)


def _scatter_add(builder: Builder, node: Node, name: str) -> None:
    """``out = data; out[ids[i, 0], ..., b] += updates[i, b]``."""
    data, _, updates = node.args
    points = builder.points(updates)
    count = len(node.args[1].shape) - 1
    nothing = any(dim == 0 for dim in data.shape)
    conditions, places = ([], []) if nothing else _entries(builder, node, data, points.groups[:count])
    term = (conditions, builder.read(updates, points))
    builder.scatter(node.out, lambda at: builder.read(data, at), points, [*places, *points.groups[count:]], term, name)


# ---------------------------------------------------------------- UnsortedSegmentSum and OneHot


def _relate_segments(axes: TensorAxes, node: Node) -> None:
    data, ids, result = (axes.of(t) for t in (*node.args[:2], node.out))
    axes.pair(data[: len(ids)], ids, node)
    _pair(axes, data[len(ids) :], result[1:], node)
    axes.hold(result[0])


def _segment_sum(builder: Builder, node: Node, name: str) -> None:
    """``out = 0; out[ids[i], b] += data[i, b]``."""
    data, ids = node.args[:2]
    points, count = builder.points(data), len(ids.shape)
    extent = node.out.shape[0]
    valid, place = held_place(builder.at(ids, points.groups[:count]), extent if extent != 0 else 1)
    term = ([valid], builder.read(data, points))
    zero = ALGEBRA.literal(0, node.out.dtype)
    builder.scatter(node.out, lambda _: zero, points, [place, *points.groups[count:]], term, name)


def _one_hot_axis(node: Node) -> int:
    return normal_axis(node.attrs.int("axis", -1), len(node.out.shape))


def _relate_one_hot(axes: TensorAxes, node: Node) -> None:
    ids, result = axes.of(node.args[0]), axes.of(node.out)
    axis = _one_hot_axis(node)
    if len(result) == len(ids):  # ids of one element, described without their dim
        ids = ids[1:]
    _pair(axes, ids, (*result[:axis], *result[axis + 1 :]), node)
    axes.hold(result[axis])


def _one_hot(builder: Builder, node: Node, name: str) -> None:
    """``out[a, d, b] = ids[a, b] == d ? on : off``."""
    ids, on, off = node.args
    points, axis = builder.points(node.out), _one_hot_axis(node)
    groups: list[Place] = [*points.groups[:axis], *points.groups[axis + 1 :]]
    if len(groups) < len(ids.shape):
        groups = [Num(0), *groups]
    number = ALGEBRA.cast(builder.at(ids, groups), INT64)
    match = ALGEBRA.call("equal", number, IndexValue(points.position(axis), INT64))
    value, other = (builder.at(t, [Num(0)] * len(t.shape)) for t in (on, off))
    builder.define(node.out, points, ALGEBRA.call("select", match, value, other), name)


GATHER = Lowering(_relate_gather, _gather)
GATHER_ND = Lowering(_relate_gather_nd, _gather_nd)
SCATTER_ADD = Lowering(_relate_scatter, _scatter_add)
SEGMENT_SUM = Lowering(_relate_segments, _segment_sum)
ONE_HOT = Lowering(_relate_one_hot, _one_hot)
