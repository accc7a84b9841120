"""The gradient of 3 x 3 windows with 16 multiplications where there were 36: the adjoint of a convolution by tiles.

    dw = Conv2DBackpropFilter(dy, x)   ==>    v = Fused(x) { tiles of 4 x 4 pixels, transformed }     v: f32[16, T, C]
                                              d = Fused(dy) { tiles of 2 x 2, as 4 x 4 }              d: f32[16, T, O]
                                              m = Fused(v, d) { BatchMatMul(v', d) }                  m: f32[16, C, O]
                                              dw = Fused(m) { 16 places, as 3 x 3 }

``dw = G' m G`` with ``d = A dy A'`` (:mod:`graphkernel.passes.format.tiles`). The last row of ``A`` is (0, -1): it is taken as
(0, 1), and the sign of its places goes to the last column of ``G'``. ``v`` is what the convolution itself was computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from graphkernel.cluster.fuse_nodes import call_of, with_unique_labels
from graphkernel.passes.format.tiles import (
    PLACES,
    RESULTS,
    WINDOW,
    by_place,
    extents,
    in_places,
    stacked,
    transformed,
)
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.operators.elemwise import MUL
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import Attrs

Make = Callable[..., Value]
"""Emits the result of a kernel from its operands."""

SPREAD_ROWS = ((1, 0), (1, 1), (1, -1), (0, 1))
"""``A``, its last row turned: what 2 x 2 of ``dy`` are multiplied by on the left, and transposed on the right."""

WINDOW_ROWS = ((1, 1, 1, 0), (0, 1, -1, 0), (0, 1, 1, -1))
HALVES = (1.0, 0.5, 0.5, 1.0)
"""``G'``, its last column turned, as signs; its columns are multiplied by these."""


def gradient_by_tiles(node: Node, tiles: Value, dy: Value) -> Value:
    """[3, 3, C, O]: the result of the ``node``, a Conv2DBackpropFilter of NHWC, from the ``tiles`` of its image and ``dy``."""
    spread = _call(node, "spread", _spread, dy)
    return _call(node, "windows", _windows, _call(node, "products", _products, tiles, spread))


def _call(node: Node, what: str, make: Make, *operands: Value) -> Value:
    """A kernel of its own."""
    builder = Builder()
    given = [builder.parameter(f"{what}{number}", value.type) for number, value in enumerate(operands)]
    body = Graph(f"{node.name}_{what}", tuple(given), (make(builder, *given),))
    return call_of(with_unique_labels(body), operands).out


def _spread(builder: Builder, dy: Value) -> Value:
    """[16, T, O]: tiles of 2 x 2 that lie side by side, transformed; behind an odd side there are zeros."""
    count, (*sides, channels) = extents(dy)
    rest = [side % RESULTS for side in sides]
    rows, columns = (side + own for side, own in zip(sides, rest, strict=True))
    if any(rest):
        dy = builder.emit(PAD_AKG, dy, head=(0, 0, 0, 0), tail=(0, *rest, 0), pad_val=0.0)
    cut = partial(
        builder.emit, STRIDED_SLICE, dy, end=(count, rows, columns, channels), strides=(1, RESULTS, RESULTS, 1)
    )
    grid = [[cut(begin=(0, row, column, 0)) for column in range(RESULTS)] for row in range(RESULTS)]
    points = (count * (rows // RESULTS) * (columns // RESULTS), channels)
    return in_places(transformed(grid, SPREAD_ROWS, builder), points, builder)


def _products(builder: Builder, tiles: Value, spread: Value) -> Value:
    """[16, C, O]: sums over all tiles."""
    attrs = Attrs.of(transpose_a=True, transpose_b=False, **{OWN_KERNEL: True})
    return builder.node(BATCH_MATMUL, (tiles, spread), attrs).out


def _windows(builder: Builder, products: Value) -> Value:
    """[3, 3, C, O] of the products at 16 places; a half is exact."""
    _, channels, results = products.type.shape
    sizes = np.outer(HALVES, HALVES).astype(np.float32).reshape(PLACES, 1, 1)
    scaled = builder.emit(MUL, products, builder.constant(sizes))
    lines = transformed(by_place(scaled, builder), WINDOW_ROWS, builder)
    whole = stacked([part for line in lines for part in line], builder)
    return builder.emit(RESHAPE, whole, shape=(WINDOW, WINDOW, channels, results))
