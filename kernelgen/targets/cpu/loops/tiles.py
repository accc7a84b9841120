"""Interleaved loops: square tiles of iterations, whose transposed accesses are vectors along the outer loop.

    interleave i { let a = b[i]; vector j: y[i, j] = x[j, i] + a }

    a = b[i .. i+W]                        along i, once for a strip of tiles
    x[j+k, i .. i+W] for all k < W         W vectors along i, transposed into W vectors along j
    y[i+r, j .. j+W] for all r < W         the body as in every vector loop, row by row

Stores along i are collected, transposed and written last. What no whole tile covers is left to the vector loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kernelgen.machines.cpu import CPU
from kernelgen.nest.index import stride
from kernelgen.nest.nodes import Block, Expr, For, Load, Store, Var
from kernelgen.targets.cpu.loops.streaming import IS_LARGE, stream_of
from kernelgen.targets.cpu.loops.tile_plan import TilePlan
from kernelgen.targets.cpu.loops.transpose import Square, square, transposed
from kernelgen.targets.cpu.loops.vector_plan import edge_of, static_trips_of
from kernelgen.targets.cpu.statements import access
from kernelgen.targets.cpu.statements.expressions import expression
from kernelgen.targets.cpu.statements.statements import Frames, run
from kernelgen.targets.cpu.text.counting import conditional, counted_loop, integer, offset, rounded_down
from kernelgen.targets.cpu.text.formats import from_memory, memory_kind, to_memory
from kernelgen.targets.cpu.text.indices import index_value, is_nonnegative
from kernelgen.targets.cpu.text.scope import Frame, Known, Lanes
from kernelgen.targets.cpu.text.values import Value


def tiled_loops(frame: Frame, loop: For, plan: TilePlan, block: Callable[[Frame, Block], None]) -> None:
    """Prints ``loop`` and the one inside as tiles, by their ``plan``, into ``frame``.

    ``block`` prints the body for one iteration of the outer loop, at the edges.
    """
    function, vector, size = frame.function, plan.vector, plan.size
    top, bottom = index_value(frame, loop.lower), index_value(frame, loop.upper)
    left, right = index_value(frame, vector.lower), index_value(frame, vector.upper)
    below, beside = rounded_down(top, bottom, size), rounded_down(left, right, size)
    tiles = _Tiles(frame, loop, plan)
    counted_loop(function, top, below, size, lambda i: tiles.strip(i, left, beside), "strip")
    if all((static_trips_of(each) or 1) % size == 0 for each in (loop, vector)):
        return

    def edge(i: Value) -> None:
        start = f"{vector.var}.start"
        row = replace(frame, streamed=None).with_variable(loop.var, i, is_nonnegative(frame, loop.lower))
        first = i.compare("slt", below).select(beside, left)
        row = row.with_variable(start, first, is_nonnegative(frame, vector.lower))
        block(row, Block((*loop.body.statements[:-1], edge_of(vector, Var(start)))))

    is_left = below.compare("slt", bottom) | beside.compare("slt", right)
    conditional(function, is_left, lambda: counted_loop(function, top, bottom, 1, edge, "edge"), "edges")


@dataclass(frozen=True)
class _Tiles:
    """The whole tiles of two loops. A *column* frame has its lanes along the outer loop, a *row* frame as usual."""

    frame: Frame
    loop: For
    plan: TilePlan

    def strip(self, i: Value, left: Value, right: Value) -> None:
        """The tiles of rows ``i ..``, from column ``left`` to ``right``."""
        function, size, column = self.frame.function, self.plan.size, self._column(i)
        if self._may_stream():
            end = self._streams(column, i, left).select(right, left)
            streaming = replace(self, frame=replace(self.frame, is_aligned=True))
            counted_loop(function, left, end, size, lambda j: streaming.tile(column, i, j), "streamed")
            left = end
        counted_loop(function, left, right, size, lambda j: self.tile(column, i, j), "tile")

    def tile(self, column: Frame, i: Value, j: Value) -> None:
        """The iterations ``i .. i + size`` x ``j .. j + size``."""
        function, size, count = self.frame.function, self.plan.size, self.plan.rows
        columns = [self._at_column(column, j + k) for k in range(size)]
        loaded = {load: self._loaded(columns, load) for load in self.plan.loads}
        stored = {store: self._square(store) for store in self.plan.stores}

        def rows(first: Value) -> None:
            numbers = [offset(first, r) for r in range(count)]
            frames = tuple(self._row(column, i, j, number, loaded) for number in numbers)
            self._body(frames, numbers, stored)

        counted_loop(function, integer(function, 0), integer(function, size), count, rows, "row")
        for store, room in stored.items():
            values = [room.row(integer(function, number)) for number in range(size)]
            for each, value in zip(columns, transposed(values), strict=True):
                access.write_memory(each, store.buffer, store.index, value)

    def _column(self, i: Value) -> Frame:
        """The outer loop's bindings, evaluated for all rows of a tile at once."""
        frame = self.frame.with_variable(self.loop.var, i, is_nonnegative(self.frame, self.loop.lower))
        frames: Frames = (replace(frame, lanes=Lanes(self.loop.var, i, self.plan.size)),)
        for binding in self.loop.body.statements[:-1]:
            frames = run(frames, binding)
        return frames[0]

    def _at_column(self, column: Frame, j: Value) -> Frame:
        vector = self.plan.vector
        return column.with_variable(vector.var, j, is_nonnegative(self.frame, vector.lower))

    def _loaded(self, columns: list[Frame], load: Load) -> Square:
        room = self._square(load)
        values = transposed([access.read_memory(column, load.buffer, load.index) for column in columns])
        for number, value in enumerate(values):
            room.put(integer(value.function, number), value)
        return room

    def _square(self, each: Load | Store) -> Square:
        return square(self.frame.function, memory_kind(each.buffer.dtype, self.frame.host), self.plan.size)

    def _row(self, column: Frame, i: Value, j: Value, number: Value, loaded: Mapping[Load, Square]) -> Frame:
        """The frame of one row of a tile: what is known along the outer loop becomes one lane of it."""
        vector, size = self.plan.vector, self.plan.size
        values: dict[Expr, Value] = {
            load: from_memory(room.row(number), load.buffer.dtype) for load, room in loaded.items()
        }
        bindings = {name: value.lane(number) for name, value in column.bindings.items()}
        frame = replace(self.frame, bindings=bindings, known=Known(values), lanes=Lanes(vector.var, j, size))
        frame = frame.with_variable(self.loop.var, i + number, is_nonnegative(self.frame, self.loop.lower))
        return frame.with_variable(vector.var, j, is_nonnegative(self.frame, vector.lower))

    def _body(self, frames: Frames, numbers: list[Value], stored: Mapping[Store, Square]) -> None:
        for statement in self.plan.vector.body.statements:
            room = stored.get(statement) if isinstance(statement, Store) else None
            if room is None or not isinstance(statement, Store):
                frames = run(frames, statement)
                continue
            for frame, number in zip(frames, numbers, strict=True):
                value = expression(frame, statement.value).splat(self.plan.size)
                room.put(number, to_memory(value, statement.buffer.dtype, frame.host))

    def _may_stream(self) -> bool:
        """Rows of tiles are whole cache lines and evenly apart: two neighbours that are aligned show that all are."""
        stream = stream_of(self.plan.vector, self.frame.streamed, self.plan.size)
        if stream is None or stream.others:
            return False
        store = stream.first
        if self.plan.size * store.buffer.dtype.itemsize != CPU.line_bytes:
            return False
        if any(stride(index, self.loop.var) is None for index in store.index):
            return False
        step = stride(access.flat_index(store.buffer, store.index), self.loop.var)
        return step is None or step * store.buffer.dtype.itemsize % CPU.line_bytes == 0

    def _streams(self, column: Frame, i: Value, j: Value) -> Value:
        """Whether the rows of a strip are aligned, and the kernel is large enough where sizes decide."""
        stream = stream_of(self.plan.vector, self.frame.streamed, self.plan.size)
        assert stream is not None
        place = stream.first.buffer, stream.first.index
        skipped = [
            access.misaligned_lanes(self._row(column, i, j, integer(i.function, number), {}), *place)
            for number in (0, 1)
        ]
        is_aligned = (skipped[0] | skipped[1]).compare("eq", 0)
        is_large = self.frame.variables.get(IS_LARGE)
        return is_aligned if is_large is None else is_aligned & is_large.compare("ne", 0)
