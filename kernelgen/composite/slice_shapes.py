"""Which elements a StridedSlice, StridedSliceV2 or Slice takes: masks and negative ends resolved, one cut per dim.

x[8, 5], begin (-3, 0), end (99, 1), strides (2, 1), shrink_axis_mask 2  ->  dim 0: 5 and 7; dim 1: element 0, dropped
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kernelgen.composite.vocabulary import STRIDED_SLICE_V2
from kernelgen.tensor.dims import Dim, Shape, Sym, least_extent
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.pieces import SLICE, STRIDED_SLICE
from kernelgen.tensor.operators.type_rules import normal_axis

L = TypeVar("L")
R = TypeVar("R")


class SizeDependentError(ValueError):
    """The cut is sound for some sizes of a symbol, or takes another number of elements at each: no shape tells it."""


@dataclass(frozen=True)
class Cut:
    """Result dim ``j`` reads element ``start + step * j`` of the operand's dim ``axis``, for j in 0..count.

    ``axis`` is None for a new dim of extent 1. A dropped dim (``shrink_axis_mask``) is read at ``start``.
    """

    axis: int | None
    start: Dim = 0
    step: int = 1
    count: Dim = 1
    dropped: bool = False


def cuts(node: Application) -> tuple[Cut, ...]:
    """The cuts of a slicing operator, dims of the result (and dropped ones) in order.

    Raises ValueError for a stride of 0, an element outside of a dropped dim, and entries for dims that the operand lacks,
    and SizeDependentError for bounds of a symbolic dim that depend on its size.
    """
    if node.op is STRIDED_SLICE:
        return tuple(_strided(node))
    return tuple(_by_axes(node))


def sliced_shape(node: Application) -> tuple[Shape, ...]:
    """The shape of a slicing operator's result."""
    return (tuple(cut.count for cut in cuts(node) if not cut.dropped),)


def _by_axes(node: Application) -> Iterator[Cut]:
    shape = node.args[0].shape
    begin = node.attrs.dims("begin")
    axes = (
        node.attrs.ints("axes", tuple(range(len(begin)))) if node.op is STRIDED_SLICE_V2 else tuple(range(len(begin)))
    )
    strides = node.attrs.ints("strides", (1,) * len(begin))
    if node.op is SLICE:
        size = node.attrs.dims("size")
        ends = tuple(None if s == -1 else b + s for b, s in _zipped(begin, size))
    else:
        ends = node.attrs.dims("end")
    given = {
        normal_axis(axis, len(shape)): (b, e, s)
        for (axis, b), (e, s) in _zipped(_zipped(axes, begin), _zipped(ends, strides))
    }
    for axis, extent in enumerate(shape):
        first, last, step = given.get(axis, (None, None, 1))
        yield _cut(axis, extent, first, last, step)


def _strided(node: Application) -> Iterator[Cut]:
    """One bit of a mask per entry, as in TensorFlow: an ellipsis wins over a new axis, a new axis over a dropped one."""
    shape = node.args[0].shape
    begin, end = node.attrs.dims("begin"), node.attrs.dims("end")
    strides = node.attrs.ints("strides", (1,) * len(begin))
    ellipsis, new, shrink, no_begin, no_end = (
        node.attrs.int(f"{kind}_mask", 0) for kind in ("ellipsis", "new_axis", "shrink_axis", "begin", "end")
    )
    taken = sum(not (ellipsis | new) >> i & 1 for i in range(len(begin)))
    axis = 0
    for i, ((b, e), step) in enumerate(_zipped(_zipped(begin, end), strides)):
        if ellipsis >> i & 1:
            for _ in range(len(shape) - taken):
                yield _cut(axis, shape[axis], None, None, 1)
                axis += 1
        elif new >> i & 1:
            yield Cut(None)
        elif axis >= len(shape):
            raise ValueError(f"begin {list(begin)} has entries for more dims than {list(shape)} has")
        else:
            extent = shape[axis]
            bounds = (None if no_begin >> i & 1 else b, None if no_end >> i & 1 else e)
            yield _element(axis, extent, b) if shrink >> i & 1 else _cut(axis, extent, *bounds, step)
            axis += 1
    for rest in range(axis, len(shape)):
        yield _cut(rest, shape[rest], None, None, 1)


def _element(axis: int, extent: Dim, at: Dim) -> Cut:
    position = _from_the_end(at, extent) or 0
    if isinstance(extent, int) and not -extent <= position < extent:
        raise ValueError(f"there is no element {position} in a dim of extent {extent}")
    if isinstance(extent, Sym) and not -least_extent(extent) <= position < least_extent(extent):
        raise SizeDependentError(
            f"whether there is an element {position} in a dim of extent {extent} depends on its size"
        )
    return Cut(axis, position if position >= 0 else extent + position, dropped=True)


def _cut(axis: int, extent: Dim, begin: Dim | None, end: Dim | None, step: int) -> Cut:
    if step == 0:
        raise ValueError("a stride is 0")
    first = _from_the_end(begin, extent)
    last = None if step > 0 and end == extent else _from_the_end(end, extent)
    if isinstance(extent, Sym):
        return _symbolic(axis, extent, first, last, step)
    chosen = range(extent)[slice(first, last, step)]
    return Cut(axis, chosen.start if len(chosen) else 0, step, len(chosen))


def _from_the_end(bound: Dim | None, extent: Dim) -> int | None:
    """A bound as a number: ``N - 2`` of ``N`` elements is -2."""
    if not isinstance(bound, Sym):
        return bound
    left_out = bound - extent
    if isinstance(left_out, int) and left_out < 0:
        return left_out
    raise SizeDependentError(f"the bound {bound} of a dim of extent {extent} depends on its size")


def _symbolic(axis: int, extent: Sym, begin: int | None, end: int | None, step: int) -> Cut:
    """All elements forwards or backwards, some at an end, all but these: what holds for every size."""
    least, first = least_extent(extent), begin or 0
    if end is None and begin in (None, -1) and step == -1:
        return Cut(axis, extent - 1, -1, extent)
    if end is not None and step > 0 and 0 <= first <= least and 0 <= end <= least:
        count = len(range(first, end, step))
        return Cut(axis, first if count else 0, step, count)
    if (end is None or end < 0) and step > 0 and -least <= first < 0:
        return Cut(axis, extent + first, step, len(range(first, end or 0, step)))
    left_out = first - (end or 0)
    if step == 1 and first >= 0 and (end is None or end < 0) and left_out <= least:
        return Cut(axis, first, 1, extent - left_out)
    raise SizeDependentError(f"the cut {begin}:{end}:{step} of a dim of extent {extent} depends on its size")


def _zipped(left: Sequence[L], right: Sequence[R]) -> list[tuple[L, R]]:
    if len(left) != len(right):
        raise ValueError(f"{list(left)} and {list(right)} differ in their number of entries")
    return list(zip(left, right, strict=True))
