"""Tiles of 4 x 4 pixels of an image, which overlap by two, and sums over them by matrices of 0, 1 and -1.

Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (CVPR 2016), their F(2 x 2, 3 x 3)::

    y  = A' ((G w G') * (B' x B)) A          2 x 2 results of a tile, from its 4 x 4 pixels and windows of 3 x 3
    dw = G' sum ((A dy A') * (B' x B)) G     its adjoint by the windows, summed over all tiles

``*`` goes place by place of a tile and sums over channels, or over tiles: a product of matrices for each of 16 places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.tensor.graph import Builder, Value
from kernelgen.tensor.operators.elemwise import ADD, SUB
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.operators.pieces import CONCAT, SPLIT, STRIDED_SLICE
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import Attrs, Dim, TensorType

SIDE, RESULTS, WINDOW = 4, 2, 3
"""Of a tile, of what becomes of it, and of a window."""

PLACES = SIDE * SIDE

IMAGE_ROWS = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
WEIGHT_ROWS = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
RESULT_ROWS = ((1, 1, 1, 0), (0, 1, -1, -1))
"""``B'``, ``G`` and ``A'``: what a tile, a window and products are multiplied by on the left, and transposed on the right."""

Grid = Sequence[Sequence[Value]]


@dataclass(frozen=True)
class Tiling:
    """How an ``image`` [N, H, W, C] is cut in tiles for results [N, rows, columns, ...] of windows with so much padding."""

    image: TensorType
    rows: int
    columns: int
    pad: tuple[int, ...]

    @classmethod
    def of(cls, image: Value, result: Value, pad: tuple[int, ...]) -> Tiling:
        """Of an ``image`` for a ``result``, whose rows and columns are known; ``pad``: above, below, left, right."""
        _, (rows, columns, _) = extents(result)
        return cls(image.type, rows, columns, pad)

    @property
    def across(self) -> tuple[int, int]:
        """Tiles of an image, down and across: the last one may reach over an odd side."""
        return -(-self.rows // RESULTS), -(-self.columns // RESULTS)

    def emit(self, image: Value, builder: Builder) -> Value:
        """[16, T, C]: the tiles of an image, which overlap by two pixels, transformed."""
        count, (height, width, channels) = extents(image)
        top, _, left, _ = self.pad
        down, across = self.across
        rows, columns = down * RESULTS, across * RESULTS
        tail = (0, rows + WINDOW - 1 - height - top, columns + WINDOW - 1 - width - left, 0)
        padded = builder.emit(PAD_AKG, image, head=(0, top, left, 0), tail=tail, pad_val=0.0)
        sides = rows - 1, columns - 1
        pixels = [[every_other(padded, (row, column), sides, builder) for column in range(SIDE)] for row in range(SIDE)]
        return in_places(transformed(pixels, IMAGE_ROWS, builder), (count * down * across, channels), builder)


def extents(value: Value) -> tuple[Dim, tuple[int, ...]]:
    """The number of images, and the other dims, which are known."""
    count, *others = value.type.shape
    return count, tuple(dim for dim in others if isinstance(dim, int))


def every_other(image: Value, first: tuple[int, int], sides: tuple[int, int], builder: Builder) -> Value:
    """Of an ``image`` the ``first`` pixel and every other one within so many rows and columns (``sides``), by a ``builder``."""
    count, (*_, channels) = extents(image)
    end = (count, first[0] + sides[0], first[1] + sides[1], channels)
    return builder.emit(STRIDED_SLICE, image, begin=(0, *first, 0), end=end, strides=(1, RESULTS, RESULTS, 1))


def in_places(grid: Grid, shape: tuple[Dim, ...], builder: Builder) -> Value:
    """[16, *shape]: the values of a ``grid`` of 4 x 4, each in this ``shape``, by a ``builder``."""
    whole = stacked([part for line in grid for part in line], builder)
    return builder.emit(RESHAPE, whole, shape=(PLACES, *shape))


def by_place(products: Value, builder: Builder) -> Grid:
    """The grid of 4 x 4 that [16, ...] holds, each place as [1, ...]."""
    parts = builder.node(SPLIT, (products,), Attrs.of(axis=0, size_splits=(1,) * PLACES)).outs
    return [parts[SIDE * row : SIDE * (row + 1)] for row in range(SIDE)]


def stacked(parts: Sequence[Value], builder: Builder) -> Value:
    """Values of one shape beside each other along a new first dim."""
    own = [builder.emit(RESHAPE, part, shape=(1, *part.type.shape)) for part in parts]
    return builder.emit(CONCAT, *own, axis=0)


def transformed(grid: Grid, rows: Sequence[Sequence[int]], builder: Builder) -> Grid:
    """``M grid M'`` by a ``builder``, for a matrix of 0, 1 and -1: each of its ``rows`` has a 1."""
    down = [
        [_sum(factors, [line[column] for line in grid], builder) for column in range(len(grid[0]))] for factors in rows
    ]
    return [[_sum(factors, line, builder) for factors in rows] for line in down]


def _sum(factors: Sequence[int], values: Sequence[Value], builder: Builder) -> Value:
    """What is added first, then what is taken away."""
    added = [value for factor, value in zip(factors, values, strict=True) if factor > 0]
    total, *others = added
    for value in others:
        total = builder.emit(ADD, total, value)
    for factor, value in zip(factors, values, strict=True):
        total = builder.emit(SUB, total, value) if factor < 0 else total
    return total
