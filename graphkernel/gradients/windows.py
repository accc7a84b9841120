"""Gradients of pooling, NCHW, and NHWC by way of it.

Which element of the image each place of each window reads is a constant table.

The greatest element of a window gets all, the first of several (row by row), as in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

import numpy as np

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.gradients.base import Application, Cotangents, RuleFunction, gradient
from graphkernel.gradients.reductions import spread
from graphkernel.ops import Tensor
from kernelgen.tensor.operators import pool
from kernelgen.tensor.operators.nn import AVG_POOL, MAX_POOL, NHWC, windows_of
from kernelgen.tensor.operators.pool import as_pooling, pooling_of
from kernelgen.tensor.operators.scatter import UNSORTED_SEGMENT_SUM
from kernelgen.tensor.types import Attrs

UNKNOWN = Declined("the height and width of the image must be known")


def _on_planes(layout: str) -> Callable[[RuleFunction], RuleFunction]:
    """A rule for images of the layout NCHW serves the other one, which the attribute ``layout`` tells, by transposing."""

    def of_any(rule: RuleFunction) -> RuleFunction:
        def found(of: Application) -> Cotangents | Declined:
            if of.attrs.str(layout, "NCHW") != NHWC:
                return rule(of)
            x, y, dy = (ops.transpose(image, (0, 3, 1, 2)) for image in (*of.operands, *of.results, of.dy))
            made = rule(replace(of, operands=(x,), results=(y,), cotangents=(dy,), attrs=of.attrs.without(layout)))
            return (
                made
                if isinstance(made, Declined)
                else [ops.transpose(dx, (0, 2, 3, 1)) for dx in made if dx is not None]
            )

        return wraps(rule)(found)

    return of_any


@gradient(MAX_POOL)
@_on_planes("format")
def max_pool(of: Application) -> Cotangents | Declined:
    """dy where the greatest element of its window was"""
    return _max_pool(of, of.attrs)


@gradient(AVG_POOL)
@_on_planes("format")
def avg_pool(of: Application) -> Cotangents | Declined:
    """dy / count at each place of its window"""
    return _avg_pool(of, of.attrs)


@gradient(pool.POOL2D)
@_on_planes("data_layout")
def pool2d(of: Application) -> Cotangents | Declined:
    """That of MaxPool, AvgPool, or a reduction of the image"""
    (x,), greatest = of.operands, pooling_of(of.attrs) is MAX_POOL
    if not of.attrs.bool("global", False):
        window = as_pooling(x.shape, of.attrs)
        return _max_pool(of, window) if greatest else _avg_pool(of, window)
    height, width = x.shape[2:]
    if not isinstance(height, int) or not isinstance(width, int):
        return UNKNOWN
    if not greatest:
        return [spread(of.dy / float(height * width), x.shape)]
    chosen = x == of.results[0]
    return [ops.select(chosen, of.dy / ops.reduce_sum(ops.cast(chosen, x.dtype), (2, 3), keep_dims=True), 0)]


def _positions(x: Tensor, attrs: Attrs) -> np.ndarray | None:
    """[places of a window, windows]: the element of the flattened image that is read, height * width in the padding."""
    height, width = x.shape[2:]
    if not isinstance(height, int) or not isinstance(width, int):
        return None
    image = np.arange(height * width, dtype=np.int32).reshape(1, 1, height, width)
    read = windows_of(image, attrs.ints("kernel_size"), attrs, -1.0)
    table = read.reshape(-1, read.shape[-2] * read.shape[-1]).T
    return np.where(table < 0, height * width, table).astype(np.int32)


def _max_pool(of: Application, attrs: Attrs) -> Cotangents | Declined:
    (x,), table = of.operands, _positions(of.operands[0], attrs)
    if table is None:
        return UNKNOWN
    places, count = table.shape
    image = ops.pad(_flattened(x), [(0, 0), (0, 0), (0, 1)], -np.inf)
    read = ops.reshape(ops.gather(image, table.reshape(-1), axis=2), (*x.shape[:2], places, count))
    on, off = (np.asarray(value, x.dtype.numpy) for value in (1, 0))
    first = ops.one_hot(ops.argmax(read, 2), places, on, off, axis=2)
    return [_scattered(first * _window_axis(of.dy, count), table, x)]


def _avg_pool(of: Application, attrs: Attrs) -> Cotangents | Declined:
    (x,), table = of.operands, _positions(of.operands[0], attrs)
    if table is None:
        return UNKNOWN
    places, count = table.shape
    share = _shares(x, table, attrs).astype(x.dtype.numpy)
    scaled = _window_axis(of.dy, count) * share
    return [_scattered(spread(scaled, (*x.shape[:2], places, count)), table, x)]


def _shares(x: Tensor, table: np.ndarray, attrs: Attrs) -> np.ndarray:
    """What one element adds to the mean of each window."""
    ones = np.ones((1, 1, *(int(str(extent)) for extent in x.shape[2:])))
    means = np.asarray(AVG_POOL.meaning(ones, attrs=attrs)).reshape(-1)
    inside = (table < ones.size).sum(axis=0)
    return np.where(inside > 0, means / np.maximum(inside, 1), 0.0)


def _flattened(x: Tensor) -> Tensor:
    return ops.reshape(x, (*x.shape[:2], x.shape[2] * x.shape[3]))


def _window_axis(dy: Tensor, count: int) -> Tensor:
    """[n, c, 1, windows]"""
    return ops.reshape(dy, (*dy.shape[:2], 1, count))


def _scattered(by_place: Tensor, table: np.ndarray, x: Tensor) -> Tensor:
    """[n, c, places, windows] added up in the image, without what fell into the padding."""
    n, c, height, width = x.shape
    ids = Tensor(x.builder.constant(table), x.builder)
    moved = ops.transpose(by_place, (2, 3, 0, 1))
    image = ops.apply(UNSORTED_SEGMENT_SUM, moved, ids, num_segments=height * width)
    return ops.reshape(ops.transpose(image, (1, 2, 0)), (n, c, height, width))
