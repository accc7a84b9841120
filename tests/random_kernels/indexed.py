"""Steps that append gathers, scatters, OneHot and random numbers; ids are inputs, some of them out of range."""

from __future__ import annotations

from typing import Any

from kernelgen.tensor.dims import Dim, Shape
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, FLOAT64, INT32
from tests.random_kernels.values import Value, wrapped
from tests.random_kernels.writer import Writer

EXTENTS = (1, 2, 3, 5, 7, 8, 16, 17)


def _ids(w: Writer, shape: Shape, places: int) -> Value:
    return w.parameter(shape, INT32, places + places // 10 + 1)


def gather(w: Writer) -> None:
    """Gather along any axis."""
    x = w.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    axis = w.number(0, len(x.shape) - 1)
    ids_shape = tuple(w.dim(EXTENTS) for _ in range(w.number(0, 2)))
    shape = (*x.shape[:axis], *ids_shape, *x.shape[axis + 1 :])
    if w.fits(shape):
        ids = _ids(w, ids_shape, w.extent(x.shape[axis]))
        attrs: dict[str, Any] = {"axis": axis - len(x.shape) if w.chance(3) else axis}
        w.op("Gather", (x, ids), (shape, x.dtype), x.bound, x.error, **attrs)


def gather_nd(w: Writer) -> None:
    """GatherNd of elements or of slices."""
    x = w.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    depth = w.number(1, len(x.shape))
    outer = tuple(w.dim(EXTENTS) for _ in range(w.number(0, 2)))
    shape = (*outer, *x.shape[depth:])
    if w.fits(shape):
        ids = _ids(w, (*outer, depth), max(map(w.extent, x.shape[:depth])))
        w.op("GatherNd", (x, ids), (shape, x.dtype), x.bound, x.error)


def tensor_scatter_add(w: Writer) -> None:
    """TensorScatterAdd with ids that repeat."""
    x = w.pick(lambda v: v.is_number and len(v.shape) > 0 and w.size(v.shape) > 0)
    if x is None:
        return
    x = w.tame(x)
    depth = w.number(1, len(x.shape))
    outer = tuple(w.dim(EXTENTS) for _ in range(w.number(1, 2)))
    shape = (*outer, *x.shape[depth:])
    if not w.fits(shape):
        return
    ids = _ids(w, (*outer, depth), max(map(w.extent, x.shape[:depth])))
    updates = w.pick(lambda v: v.shape == shape and v.dtype == x.dtype and v.bound <= 8) or w.parameter(shape, x.dtype)
    count = w.size(outer)
    bound = x.bound + count * updates.bound
    error = x.error + count * updates.error + bound * x.rounding * _steps(x, count)
    w.op("TensorScatterAdd", (x, ids, updates), (x.shape, x.dtype), wrapped(bound, x.dtype), error)


def unsorted_segment_sum(w: Writer) -> None:
    """UnsortedSegmentSum with ids of any rank."""
    x = w.pick(lambda v: v.is_number and len(v.shape) > 0)
    if x is None:
        return
    x = w.tame(x)
    rank = w.number(1, len(x.shape))
    segments = w.dim(EXTENTS)
    shape: tuple[Dim, ...] = (segments, *x.shape[rank:])
    if w.fits(shape):
        ids = _ids(w, x.shape[:rank], w.extent(segments))
        count = w.size(x.shape[:rank])
        bound = max(count * x.bound, 1)
        error = count * x.error + bound * x.rounding * _steps(x, count)
        w.op("UnsortedSegmentSum", (x, ids), (shape, x.dtype), wrapped(bound, x.dtype), error, num_segments=segments)


def _steps(x: Value, count: int) -> int:
    """A sum that is rounded at every step: as many errors as terms."""
    return max(count, 1) if x.dtype.itemsize == 2 else 1


def one_hot(w: Writer) -> None:
    """OneHot with constant or computed on and off values."""
    kind = w.one((FLOAT32, FLOAT16, FLOAT64, INT32))
    shape: Shape = tuple(w.dim(EXTENTS) for _ in range(w.number(0, 2)))
    depth = w.dim(EXTENTS)
    axis = w.number(-1, len(shape))
    one = Value(w.constant(INT32).tensor, 1)
    ids = w.pick(lambda v: v.dtype == INT32 and v.is_exact and len(v.shape) < 4) if w.chance(3) else None
    ids = ids or _ids(w, shape, w.extent(depth))
    result = w.shape_of("OneHot", (ids, one, one), depth=depth, axis=axis if axis <= len(ids.shape) else -1)
    if result is None or not w.fits(result):
        return
    on, off = w.constant(kind), w.constant(kind)
    attrs: dict[str, Any] = {"depth": depth, "axis": axis if axis <= len(ids.shape) else -1}
    w.op("OneHot", (ids, on, off), (result, kind), max(on.bound, off.bound), **attrs)


def standard_normal(w: Writer) -> None:
    """StandardNormal of the shape of another value."""
    x = w.pick()
    if x is not None:
        kind = w.one((FLOAT32, FLOAT32, FLOAT16))
        error = 1e-4 if kind == FLOAT32 else 0.01
        w.op("StandardNormal", (), (x.shape, kind), 6, error, shape=x.shape, seed=w.number(0, 2**40))
