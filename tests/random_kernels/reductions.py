"""Steps that append reductions, positions of extremes and scans."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from kernelgen.tensor.dims import least_extent
from kernelgen.tensor.dtypes import BOOL, FLOAT32, INT32, INT64
from tests.random_kernels.values import Value, wrapped
from tests.random_kernels.writer import Writer

REDUCTIONS = ("ReduceSum", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAll", "ReduceAny")
MOST_SUMMED = 30000.0
"""Sums of floats stay below: float16 ends at 65504."""


def reduce(w: Writer) -> None:
    """Over any dims, over none named, with and without kept dims."""
    name = w.one(REDUCTIONS)
    is_logical = name in ("ReduceAll", "ReduceAny")
    x = w.pick(lambda v: v.dtype == BOOL if is_logical else v.is_number)
    if x is None:
        return
    x = w.tame(x)
    rank = len(x.shape)
    axes = sorted(w.random.sample(range(rank), w.number(0, rank)))
    keep = w.chance()
    removed = axes or list(range(rank))
    count = w.size(tuple(x.shape[a] for a in removed))
    shape = tuple(1 if d in removed else dim for d, dim in enumerate(x.shape) if keep or d not in removed)
    bounds = _bounds(name, x, count)
    if bounds is None:
        return
    attrs: dict[str, Any] = {"axis": tuple(a - rank if w.chance() else a for a in axes), "keep_dims": keep}
    if name == "ReduceSum" and w.chance(4):
        attrs["enable_atomic_add"] = True
    name = "ReducePrd" if name == "ReduceProd" and w.chance(4) else name
    w.op(name, (x,), (shape, x.dtype), wrapped(bounds[0], x.dtype), bounds[1], **attrs)


def _bounds(name: str, x: Value, count: int) -> tuple[float, float] | None:
    """Bound and error of the result; None when it would be too large to compare."""
    if name == "ReduceSum":
        bound = count * x.bound
        return (
            None if x.dtype.is_float and bound > MOST_SUMMED else (bound, count * x.error + x.rounding * max(bound, 1))
        )
    if name == "ReduceProd":
        if x.dtype.is_float and (count > 8 or x.bound > 2):
            return None
        if x.dtype.is_integer:
            return 2.0**64, 0  # wraps around
        bound = max(x.bound, 1) ** count
        return bound, count * bound * x.error + x.rounding * bound
    if count == 0 and x.dtype != BOOL:
        return (inf if x.dtype.is_float else float(np.iinfo(x.dtype.numpy).max) + 1), x.error
    return x.bound, x.error


def extreme_position(w: Writer) -> None:
    """Argmax and Argmin of exact numbers."""
    x = w.pick(lambda v: v.is_number and v.is_exact and len(v.shape) > 0)
    if x is None:
        return
    axis = w.number(0, len(x.shape) - 1)
    if least_extent(x.shape[axis]) == 0:
        return
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    attrs: dict[str, Any] = {"axis": axis - len(x.shape) if w.chance() else axis}
    w.op(w.one(("Argmax", "Argmin")), (x,), (shape, w.one((INT32, INT64))), w.extent(x.shape[axis]), **attrs)


def elem_any(w: Writer) -> None:
    """ElemAny and ElemAll of exact values."""
    x = w.pick(lambda v: not v.is_complex and v.is_exact)
    if x is not None:
        kind = w.one((FLOAT32, BOOL, INT32))
        w.op(w.one(("ElemAny", "ElemAll")), (x,), ((1,), kind), 1, dst_type=kind.name)


def scan(w: Writer) -> None:
    """CumSum and CumProd, exclusive and from the end too."""
    x = w.pick(lambda v: v.is_number and len(v.shape) > 0)
    if x is None:
        return
    x = w.tame(x)
    axis = w.number(0, len(x.shape) - 1)
    count = w.extent(x.shape[axis])
    name = w.one(("CumSum", "CumSum", "CumProd"))
    bounds = _bounds("ReduceSum" if name == "CumSum" else "ReduceProd", x, max(count, 1))
    if bounds is None:
        return
    attrs: dict[str, Any] = {
        "axis": axis - len(x.shape) if w.chance() else axis,
        "exclusive": w.chance(),
        "reverse": w.chance(),
    }
    # The running sum is rounded at every step in the data type of the result.
    error = bounds[1] * (count if x.dtype.itemsize == 2 else 1)
    w.op(name, (x,), (x.shape, x.dtype), wrapped(max(bounds[0], 1), x.dtype), error, **attrs)
