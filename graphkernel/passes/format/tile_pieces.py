"""Results of tiles in pieces: of an odd side all whole tiles, and those of which the first row or column alone is a result.

    35 x 35 results of 18 x 18 tiles:      17 x 17 tiles of 2 x 2   | 17 x 1 of 2 x 1
                                           1 x 17 tiles of 1 x 2    | 1 x 1 of 1 x 1

A piece is a grid of values [N, tiles down, phases, tiles across, phases, C]: one for each place that a result has in its tile;
phases are those of windows whose pixels lie apart. What computes point by point behind does so for each of them, while
registers hold it; where the image is asked for all are put in their places, and what a kernel computes last is stored there.
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
    """So many ``tiles`` along one side, from the ``first`` one, and of each some results, from one ``place`` on, in the first
    ``phases`` of those that lie a ``step`` apart.
    """

    first: int
    tiles: int
    place: int
    results: int
    phases: int
    step: int

    @property
    def end(self) -> int:
        """Behind the last tile."""
        return self.first + self.tiles

    @property
    def extent(self) -> int:
        """How many results lie along it."""
        return self.tiles * self.results * self.phases

    @property
    def around(self) -> range:
        """The results of all its tiles, or the one place of the one tile that is not whole."""
        tile = RESULTS * self.step
        if self.results == RESULTS:
            return range(self.first * tile, self.end * tile)
        start = self.first * tile + self.place * self.step
        return range(start, start + self.phases)

    def within(self, number: int) -> range:
        """Where in each tile of those the results of the place of this ``number`` are."""
        return range(number * self.step, number * self.step + self.phases)


def spans(side: int, step: int) -> tuple[Span, ...]:
    """Those of a ``side`` for windows whose pixels lie a ``step`` apart: tiles that are whole, and parts of one that is not."""
    lines, rest = divmod(side, step)
    tiles, half = divmod(lines, RESULTS)
    found = (
        Span(0, tiles, 0, RESULTS, step, step),
        Span(tiles, half, 0, 1, step, step),
        Span(tiles, min(rest, 1), half, 1, rest, step),
    )
    return tuple(span for span in found if span.tiles)


@dataclass(frozen=True)
class Piece:
    """The results of the tiles of a span down and of one across."""

    down: Span
    across: Span
    grid: Grid

    def mapped(self, function: Callable[[int, int], Value]) -> Piece:
        """The piece with what a ``function`` gives for each number down and across."""
        return replace(
            self,
            grid=tuple(
                tuple(function(row, column) for column in range(self.across.results))
                for row in range(self.down.results)
            ),
        )

    def whole(self, builder: Builder) -> Value:
        """[N, rows, columns, C]: its part of the image."""
        count, down, row, across, column, channels = self.grid[0][0].type.shape
        shape = (count, down, 1, row, across, 1, column, channels)
        lines = [
            _in_line([builder.emit(RESHAPE, value, shape=shape) for value in line], 5, builder) for line in self.grid
        ]
        whole = (count, self.down.extent, self.across.extent, channels)
        return builder.emit(RESHAPE, _in_line(lines, 2, builder), shape=whole)


@dataclass(frozen=True)
class Pieces:
    """An image in pieces, row by row."""

    rows: tuple[tuple[Piece, ...], ...]

    def is_like(self, other: Pieces) -> bool:
        """Whether it is cut as the other."""
        return self._spans == other._spans

    @property
    def _spans(self) -> list[list[tuple[Span, Span]]]:
        return [[(piece.down, piece.across) for piece in row] for row in self.rows]

    def whole(self, builder: Builder) -> Value:
        """The image."""
        rows = [_in_line([piece.whole(builder) for piece in row], COLUMNS, builder) for row in self.rows]
        return _in_line(rows, ROWS, builder)


def results_of(products: Value, shape: Shape, builder: Builder) -> Pieces:
    """What convolutions give, of this ``shape``, from ``products`` [16, N, tiles, phases, tiles, phases, C] (``builder``)."""
    (_, height, width, _), (_, _, _, row, _, column, _) = shape, products.type.shape
    down, across = (spans(int(str(side)), int(str(step))) for side, step in ((height, row), (width, column)))
    return Pieces(tuple(tuple(_results(products, rows, columns, builder) for columns in across) for rows in down))


def is_by_pieces(node: Node, image: Value) -> bool:
    """Whether a ``node`` computes each point of its result, which is like the ``image``, from the same of its operands."""
    return (
        node.op.kind is Kind.ELEMWISE
        and len(node.types) == 1
        and node.out.type.shape == image.type.shape
        and all(arg.type.rank <= image.type.rank for arg in node.args)
    )


def by_pieces(node: Node, args: Sequence[Value | Pieces], builder: Builder) -> Pieces:
    """What a ``node`` makes of ``args``, images in like pieces, whole ones or what is broadcast to them, by a ``builder``."""
    like = next(arg for arg in args if isinstance(arg, Pieces))

    def made(line: int, column: int) -> Piece:
        piece = like.rows[line][column]

        def of(row: int, place: int) -> Value:
            own = [
                arg.rows[line][column].grid[row][place]
                if isinstance(arg, Pieces)
                else _part(arg, (piece.down, piece.across), (row, place), builder)
                for arg in args
            ]
            return builder.node(node.op, tuple(own), node.attrs).out

        return piece.mapped(of)

    return Pieces(tuple(tuple(made(line, column) for column in range(len(row))) for line, row in enumerate(like.rows)))


def _results(products: Value, down: Span, across: Span, builder: Builder) -> Piece:
    _, count, *_, channels = products.type.shape
    shape = (count, down.tiles, down.phases, across.tiles, across.phases, channels)
    along = (range(span.first, span.end) for span in (down, across))
    own = _cut(
        products, [None, None, next(along), range(down.phases), next(along), range(across.phases), None], builder
    )
    grid = transformed(by_place(own, builder), RESULT_ROWS, builder)
    return Piece(down, across, ()).mapped(
        lambda row, column: builder.emit(RESHAPE, grid[down.place + row][across.place + column], shape=shape)
    )


def _part(value: Value, spans: tuple[Span, Span], numbers: tuple[int, int], builder: Builder) -> Value:
    """What of a ``value``, which is broadcast to an image, belongs to the results of these ``numbers`` down and across."""
    around, split, within = list[range | None](), list[Dim](), list[range | None]()
    for dim, extent in enumerate(value.type.shape, IMAGE_RANK - value.type.rank):
        if dim not in (ROWS, COLUMNS) or extent == 1:
            one = (1,) if dim in (ROWS, COLUMNS) else ()
            around.append(None)
            split += [extent, *one]
            within += [None] * (1 + len(one))
        else:
            span, number = spans[dim - ROWS], numbers[dim - ROWS]
            around.append(span.around)
            split += [span.tiles, len(span.around) // span.tiles]
            within += [None, span.within(number)]
    found = _cut(value, around, builder)
    return _cut(builder.emit(RESHAPE, found, shape=tuple(split)), within, builder)


def _cut(value: Value, places: Sequence[range | None], builder: Builder) -> Value:
    """What of a ``value`` lies at these ``places`` of each dim; all of it where none is given."""
    shape = value.type.shape
    begin = tuple(0 if along is None else along.start for along in places)
    end = tuple(extent if along is None else along.stop for along, extent in zip(places, shape, strict=True))
    if not any(begin) and end == shape:
        return value
    return builder.emit(STRIDED_SLICE, value, begin=begin, end=end, strides=(1,) * len(shape))


def _in_line(parts: Sequence[Value], axis: int, builder: Builder) -> Value:
    return parts[0] if len(parts) == 1 else builder.emit(CONCAT, *parts, axis=axis)
