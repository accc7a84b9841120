"""Tiles of 4 x 4 pixels of an image, which overlap by two, and sums over them by matrices of 0, 1 and -1.

Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (CVPR 2016), their F(2 x 2, 3 x 3)::

    y  = A' ((G w G') * (B' x B)) A          2 x 2 results of a tile, from its 4 x 4 pixels and windows of 3 x 3
    dw = G' sum ((A dy A') * (B' x B)) G     its adjoint by the windows, summed over all tiles

``*`` goes place by place of a tile and sums over channels, or over tiles: a product of matrices for each of 16 places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from graphkernel.cluster.convolution_cost import tiles_along
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
    """How an ``image`` [N, H, W, C] is cut in tiles for results [N, rows, columns, ...] of windows with so much padding.

    The pixels of a window may be some rows and columns apart (``steps``). Every so many rows and columns are an image then,
    a phase; all of them are cut at once.
    """

    image: TensorType
    rows: int
    columns: int
    pad: tuple[int, ...]
    steps: tuple[int, int]

    @classmethod
    def of(cls, image: Value, result: Value, pad: tuple[int, ...], steps: tuple[int, int] = (1, 1)) -> Tiling:
        """Of an ``image`` for a ``result``, whose rows and columns are known; ``pad``: above, below, left, right; ``steps``:
        down and across.
        """
        _, (rows, columns, _) = extents(result)
        return cls(image.type, rows, columns, pad, steps)

    @property
    def places(self) -> tuple[int, int, int, int]:
        """Tiles down, their phases, tiles across, their phases: the last tile of a phase may reach over its side."""
        down, across = self.steps
        return tiles_along(self.rows, down), down, tiles_along(self.columns, across), across

    def emit(self, image: Value, builder: Builder) -> Value:
        """[16, T, C]: the tiles of an image, which overlap by two pixels of a phase, transformed."""
        count, (height, width, channels) = extents(image)
        (top, _, left, _), (down, row, across, column) = self.pad, self.places
        high, wide = down * RESULTS + WINDOW - 1, across * RESULTS + WINDOW - 1
        tail = (0, high * row - height - top, wide * column - width - left, 0)
        padded = builder.emit(PAD_AKG, image, head=(0, top, left, 0), tail=tail, pad_val=0.0)
        phases = builder.emit(RESHAPE, padded, shape=(count, high, row, wide, column, channels))
        pixels = [[self._pixels(phases, (line, place), builder) for place in range(SIDE)] for line in range(SIDE)]
        return in_places(transformed(pixels, IMAGE_ROWS, builder), (count * prod(self.places), channels), builder)

    def _pixels(self, phases: Value, place: tuple[int, int], builder: Builder) -> Value:
        """Of all tiles the pixel at this place."""
        count, _, row, _, column, channels = phases.type.shape
        ends = [first + (tiles - 1) * RESULTS + 1 for first, tiles in zip(place, self.places[::2], strict=True)]
        end = (count, ends[0], row, ends[1], column, channels)
        begin, strides = (0, place[0], 0, place[1], 0, 0), (1, RESULTS, 1, RESULTS, 1, 1)
        return builder.emit(STRIDED_SLICE, phases, begin=begin, end=end, strides=strides)


def extents(value: Value) -> tuple[Dim, tuple[int, ...]]:
    """The number of images, and the other dims, which are known."""
    count, *others = value.type.shape
    return count, tuple(dim for dim in others if isinstance(dim, int))


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
