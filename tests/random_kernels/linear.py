"""A step that appends a layer: a product of the size that matrix units take, what makes its factors, and what follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelgen.tensor.dims import Shape
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from tests.random_kernels.values import Value
from tests.random_kernels.writer import Writer

EXTENTS = (2, 15, 16, 17, 33, 48, 64)
"""Rows, columns and depth; larger than what other steps make, so that a product is worth its own unit."""
SMALL = 2.0**-6
"""A factor times this gives sums that other numbers can be compared with."""


def layer(w: Writer) -> None:
    """MatMul or BatchMatMul in half precision, with up to four steps behind it."""
    kind = w.one((FLOAT16, FLOAT16, BFLOAT16))
    batch: Shape = (w.one((2, 3)),) if w.chance(3) else ()
    rows, columns, depth = (w.one(EXTENTS) for _ in range(3))
    turned: dict[str, Any] = {"transpose_a": w.chance(), "transpose_b": w.chance()}
    left = _factor(w, (*batch, *((depth, rows) if turned["transpose_a"] else (rows, depth))), kind)
    right = _factor(w, (*batch, *((columns, depth) if turned["transpose_b"] else (depth, columns))), kind)
    bound = max(depth * left.bound * right.bound, 1)
    error = depth * (left.bound * right.error + right.bound * left.error) + bound * left.rounding
    name = "BatchMatMul" if batch else "MatMul"
    y = w.op(name, (left, right), ((*batch, rows, columns), kind), bound, error, **turned)
    for _ in range(w.number(0, 4)):
        y = w.one(BEHIND)(w, y)


def _factor(w: Writer, shape: Shape, kind: DType) -> Value:
    """An input as it is, cast, or scaled."""
    way = w.one(("plain", "cast", "scaled", "scaled"))
    x = w.parameter(shape, FLOAT32 if way == "cast" else kind)
    if way == "cast":
        return w.op("Cast", (x,), (shape, kind), x.bound, x.bound * 2.0**-10, dst_type=kind.name)
    if way == "scaled":
        return w.op("Mul", (x, w.constant(kind, (SMALL,))), (shape, kind), x.bound * SMALL)
    return x


def _with(w: Writer, y: Value, other: Value) -> Value:
    return w.op("Add", (y, other), (y.shape, y.dtype), y.bound + other.bound, y.error + y.rounding)


def _bias(w: Writer, y: Value) -> Value:
    return _with(w, y, w.parameter(y.shape[-1:], y.dtype))


def _residual(w: Writer, y: Value) -> Value:
    return _with(w, y, w.parameter(y.shape, y.dtype))


def _scaled(w: Writer, y: Value) -> Value:
    return w.op("Mul", (y, w.constant(y.dtype, (0.125,))), (y.shape, y.dtype), y.bound, y.error)


def _positive(w: Writer, y: Value) -> Value:
    return w.op("Maximum", (y, w.constant(y.dtype, (0,))), (y.shape, y.dtype), y.bound, y.error)


def _bent(w: Writer, y: Value) -> Value:
    return w.op("Tanh", (y,), (y.shape, y.dtype), 1, y.error + y.rounding)


def _recast(w: Writer, y: Value) -> Value:
    kind = FLOAT16 if y.dtype == FLOAT32 else FLOAT32
    return w.op("Cast", (y,), (y.shape, kind), y.bound, y.error, dst_type=kind.name)


def _less_its_largest(w: Writer, y: Value) -> Value:
    """Rows as a softmax begins with them."""
    top = w.op("ReduceMax", (y,), ((*y.shape[:-1], 1), y.dtype), y.bound, y.error, axis=(-1,), keep_dims=True)
    return w.op("Sub", (y, top), (y.shape, y.dtype), 2 * y.bound, 2 * y.error + y.rounding)


BEHIND: tuple[Callable[[Writer, Value], Value], ...] = (
    _bias, _residual, _scaled, _positive, _bent, _recast, _less_its_largest,
)  # fmt: skip
