"""Results of tiles in pieces: of an odd side all whole tiles, and those of which the first row or column alone is a result.

    35 x 35 results of 18 x 18 tiles:      17 x 17 tiles of 2 x 2   | 17 x 1 of 2 x 1
                                           1 x 17 tiles of 1 x 2    | 1 x 1 of 1 x 1

A piece is a grid of values [N, tiles down, tiles across, C]: one for each place that a result has in its tile. What computes
point by point behind does so for each of them, while registers hold it; where the image is asked for all are put in their
places, and what a kernel computes last is stored there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from graphkernel.passes.format.tiles import RESULT_ROWS, RESULTS, Grid, by_place, transformed
from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.pieces import CONCAT, STRIDED_SLICE
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import Dim, Shape

ROWS, COLUMNS, IMAGE_RANK = 1, 2, 4
"""Of an image, N H W C."""


@dataclass(frozen=True)
class Span:
    """So many ``tiles`` of one side, from the ``first`` one, and how many results each has along it."""

    first: int
    tiles: int
    results: int

    @property
    def end(self) -> int:
        """Behind the last tile."""
        return self.first + self.tiles

    def of(self, place: int) -> range:
        """Where in the image the results are that have this ``place`` in their tiles."""
        start = self.first * RESULTS + place
        return range(start, start + (self.tiles - 1) * RESULTS + 1, RESULTS)


def spans(side: Dim) -> tuple[Span, ...]:
    """Those of so many results, a known number: of the tiles that are whole, and of the one that is not."""
    whole, rest = divmod(int(str(side)), RESULTS)
    return (Span(0, whole, RESULTS),) * (whole > 0) + (Span(whole, 1, rest),) * (rest > 0)


@dataclass(frozen=True)
class Piece:
    """The results of the tiles of a span down and of one across."""

    down: Span
    across: Span
    grid: Grid

    def mapped(self, function: Callable[[int, int], Value]) -> Piece:
        """The piece with what a ``function`` gives for each place in a tile."""
        places = range(self.down.results), range(self.across.results)
        return replace(self, grid=tuple(tuple(function(row, column) for column in places[1]) for row in places[0]))

    def whole(self, builder: Builder) -> Value:
        """[N, rows, columns, C]: its part of the image."""
        count, _, _, channels = self.grid[0][0].type.shape
        shape = (count, self.down.tiles, 1, self.across.tiles, 1, channels)
        lines = [
            _in_line([builder.emit(RESHAPE, value, shape=shape) for value in line], 4, builder) for line in self.grid
        ]
        both = self.down.tiles * self.down.results, self.across.tiles * self.across.results
        return builder.emit(RESHAPE, _in_line(lines, 2, builder), shape=(count, *both, channels))


@dataclass(frozen=True)
class Pieces:
    """An image in pieces, row by row."""

    rows: tuple[tuple[Piece, ...], ...]

    def whole(self, builder: Builder) -> Value:
        """The image."""
        rows = [_in_line([piece.whole(builder) for piece in row], COLUMNS, builder) for row in self.rows]
        return _in_line(rows, ROWS, builder)


def results_of(products: Value, shape: Shape, builder: Builder) -> Pieces:
    """What convolutions give, of this ``shape``, from ``products`` [16, N, tiles down, tiles across, C], by a ``builder``."""
    _, rows, columns, _ = shape
    return Pieces(
        tuple(
            tuple(_results(products, down, across, builder) for across in spans(columns)) for down in spans(rows)
        )
    )  # fmt: skip


def is_by_pieces(node: Node, image: Value) -> bool:
    """Whether a ``node`` computes each point of its result, which is like the ``image``, from the same of its operands."""
    return (
        node.op.kind is Kind.ELEMWISE
        and len(node.types) == 1
        and node.out.type.shape == image.type.shape
        and all(arg.type.rank <= image.type.rank for arg in node.args)
    )


def by_pieces(node: Node, args: Sequence[Value | Pieces], builder: Builder) -> Pieces:
    """What a ``node`` makes of ``args``, images in pieces, whole ones or what is broadcast to them, by a ``builder``."""
    like = next(arg for arg in args if isinstance(arg, Pieces))

    def made(line: int, column: int) -> Piece:
        piece = like.rows[line][column]

        def of(row: int, place: int) -> Value:
            own = [
                arg.rows[line][column].grid[row][place]
                if isinstance(arg, Pieces)
                else _part(arg, (piece.down.of(row), piece.across.of(place)), builder)
                for arg in args
            ]
            return builder.node(node.op, tuple(own), node.attrs).out

        return piece.mapped(of)

    return Pieces(tuple(tuple(made(line, column) for column in range(len(row))) for line, row in enumerate(like.rows)))


def _results(products: Value, down: Span, across: Span, builder: Builder) -> Piece:
    places, count, *tiles, channels = products.type.shape
    if [down.tiles, across.tiles] != tiles:
        begin, end = (0, 0, down.first, across.first, 0), (places, count, down.end, across.end, channels)
        products = builder.emit(STRIDED_SLICE, products, begin=begin, end=end, strides=(1,) * len(begin))
    shape = (count, down.tiles, across.tiles, channels)
    grid = transformed(by_place(products, builder), RESULT_ROWS, builder)
    return Piece(down, across, grid).mapped(
        lambda row, column: builder.emit(RESHAPE, grid[row][column], shape=shape)
    )  # fmt: skip


def _part(value: Value, places: tuple[range, range], builder: Builder) -> Value:
    """What of a ``value``, which is broadcast to an image, belongs to these ``places`` of rows and columns."""
    lead = IMAGE_RANK - value.type.rank
    begin, end, strides = [0] * value.type.rank, list(value.type.shape), [1] * value.type.rank
    for dim, along in zip((ROWS - lead, COLUMNS - lead), places, strict=True):
        if dim >= 0 and value.type.shape[dim] != 1:
            begin[dim], end[dim], strides[dim] = along.start, along.stop, along.step
    if not any(begin) and end == list(value.type.shape) and set(strides) <= {1}:
        return value
    return builder.emit(STRIDED_SLICE, value, begin=tuple(begin), end=tuple(end), strides=tuple(strides))


def _in_line(parts: Sequence[Value], axis: int, builder: Builder) -> Value:
    return parts[0] if len(parts) == 1 else builder.emit(CONCAT, *parts, axis=axis)
