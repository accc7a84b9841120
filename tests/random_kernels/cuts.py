"""Steps that append slices (with every mask), pads and their undoing."""

from __future__ import annotations

from typing import Any

from kernelgen.tensor.dims import Dim, Shape, Sym
from kernelgen.tensor.dtypes import BOOL
from tests.random_kernels.values import Value
from tests.random_kernels.writer import Writer

SYMBOLIC = (
    (7, 3, 1, "begin end"), (7, 3, 1, "begin end"), (7, 3, -1, "begin end"), (1, 3, 1, "end"), (0, -1, 1, ""),
    (0, 1, 2, "begin"), (0, -1, 1, "begin"), (-1, 0, 1, "end"), (0, 0, 1, "shrink_axis"), (-1, 0, 1, "shrink_axis"),
)  # fmt: skip
"""(begin, end, stride, masks) for dims of unknown sizes."""


def strided_slice(w: Writer) -> None:
    """StridedSlice; where a size is not known, whole dims, all but an end, or an end."""
    x = w.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    entries: list[tuple[int, int, int, str]] = []
    has_ellipsis = w.chance(4)
    skipped = sorted(w.random.sample(range(len(x.shape) + 1), 2)) if has_ellipsis else [0, 0]
    for d, dim in enumerate(x.shape):
        if has_ellipsis and d == skipped[0]:
            entries.append((w.number(0, 3), w.number(0, 3), 1, "ellipsis"))
        if skipped[0] <= d < skipped[1]:
            continue
        if w.chance(6):
            entries.append((w.number(-1, 2), w.number(0, 2), 1, "new_axis"))
        entries.append(_entry(w, dim))
    if not has_ellipsis and w.chance(3):
        del entries[w.number(1, len(entries)) :]  # the other dims stay whole
    _append(w, x, entries)


def _append(w: Writer, x: Value, entries: list[tuple[int, int, int, str]]) -> None:
    masks = {
        f"{kind}_mask": sum(1 << i for i, entry in enumerate(entries) if kind in entry[3].split())
        for kind in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    begin, end, strides = (tuple(entry[k] for entry in entries) for k in range(3))
    _sliced(w, "StridedSlice", x, begin=begin, end=end, strides=strides, **masks)


def _entry(w: Writer, dim: Dim) -> tuple[int, int, int, str]:
    """(begin, end, stride, masks) of a dim."""
    if isinstance(dim, Sym):
        return w.one(SYMBOLIC)
    if dim and w.chance(6):
        position = w.number(0, dim - 1)
        return (position - dim if w.chance() else position, w.number(-2, 5), 1, "shrink_axis")
    begin, end, stride = _bounds(w, dim)
    masks = " ".join(kind for kind in ("begin", "end") if w.chance(4))
    return (begin, end, stride, masks)


def _bounds(w: Writer, dim: int) -> tuple[int, int, int]:
    """A range with elements in most cases; ends that count from the back or lie beyond at times."""
    first, last = sorted((w.number(0, max(dim - 1, 0)), w.number(0, max(dim - 1, 0))))
    stride = w.one((1, 1, 2, 3))
    if w.chance(4):
        begin, end = last, first - 1 if first else -dim - 1
        return (begin - dim if w.chance(3) else begin, end, -stride)
    begin, end = first, last + 1
    return (
        begin - dim if dim and w.chance(3) else begin,
        end - dim if end < dim and w.chance(3) else end + w.one((0, 0, 9)) * (end == dim),
        stride,
    )


def slice_by_axes(w: Writer) -> None:
    """StridedSliceV2 and Slice."""
    x = w.pick(lambda v: len(v.shape) > 0 and w.static(v))
    if x is None:
        return
    rank = len(x.shape)
    if w.chance():
        axes = tuple(sorted(w.random.sample(range(rank), w.number(1, rank))))
        found = [_bounds(w, w.extent(x.shape[axis])) for axis in axes]
        begin, end, strides = (tuple(item[k] for item in found) for k in range(3))
        written = tuple(axis - rank if w.chance(4) else axis for axis in axes)
        _sliced(w, "StridedSliceV2", x, begin=begin, end=end, strides=strides, axes=written)
        return
    begin = tuple(w.number(0, max(w.extent(dim) - 1, 0)) for dim in x.shape)
    size = tuple(
        -1 if w.chance(3) else w.number(min(1, w.extent(dim)), w.extent(dim) - b)
        for b, dim in zip(begin, x.shape, strict=True)
    )
    _sliced(w, "Slice", x, begin=begin, size=size)


def _sliced(w: Writer, name: str, x: Value, **attrs: Any) -> None:
    shape = w.shape_of(name, (x,), **attrs)
    if shape is not None and len(shape) < 7 and (w.size(shape) or w.size(x.shape) == 0 or w.chance(10)):
        w.op(name, (x,), (shape, x.dtype), x.bound, x.error, **attrs)


def pad(w: Writer) -> None:
    """PadAkg and UnPadAkg."""
    x = w.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    rank = len(x.shape)
    if w.chance(3):
        tail = tuple(
            0 if isinstance(dim, Sym) or d < rank - 2 else w.number(0, max(dim - 1, 0)) for d, dim in enumerate(x.shape)
        )
        w.op("UnPadAkg", (x,), (_changed(x.shape, tail, -1), x.dtype), x.bound, x.error, tail=tail)
        return
    head, tail = (tuple(w.one((0, 0, 1, 2, 3)) for _ in x.shape) for _ in range(2))
    shape = _changed(_changed(x.shape, head, 1), tail, 1)
    value = w.one((0, 1, 2)) if not x.dtype.is_float else w.one((0.0, 1.0, -2.5))
    value = bool(value) if x.dtype == BOOL else value
    if w.fits(shape):
        bound = max(x.bound, abs(value))
        w.op("PadAkg", (x,), (shape, x.dtype), bound, x.error, head=head, tail=tail, pad_val=value)


def _changed(shape: Shape, by: tuple[int, ...], sign: int) -> Shape:
    return tuple(dim + sign * amount for dim, amount in zip(shape, by, strict=True))
