"""Tiles of a chain of stencils: a producer runs over the rows that a tile of its consumers reads, also where tiles overlap.

    P[i, j]: p[i, j] = f(x, i, j)                          P[b, i, j]: p[b, i - 16 b, j] = f(x, i, j)    16 b <= i < 16 b + 18
    C[i, j]: y[i, j] = p[i, j] + .. + p[i + 2, j + 2]  ->  C[b, i, j]: y[i, j] = p[b, i - 16 b, j] + ..  b = floor(i / 16)

The tile of the last statement is ``{ b -> i : 16 b <= i < 16 b + 16 }``; what a statement is asked for is the image of its
readers' tiles under what they read, and so on backwards: scaled by a stride, widened by a window. Both stand inside one
loop over ``b`` (:mod:`kernelgen.poly.grouping.shared_loops`), and of ``p`` one tile is alive at a time, which stays in a
cache.
Legality: an instance that runs in two tiles computes the same from the same operands, and writes an element of its own in
each, ``p[b, ..]``; every read ``p[i + k]`` of tile ``b`` is to ``p[b, i + k - start(b)]``, which tile ``b`` wrote by
construction. What leaves the kernel is written once: its tiles are a partition, or a statement of its own stores that part
of each tile. The proof sees the dependences of the result, not this text.
Source: post-tiling fusion with overlapped storage (Zhao and Di, MICRO 2020), overlapped tiles of Halide (Ragan-Kelley, 2013).
"""

from __future__ import annotations

from collections.abc import Iterator as Iterable
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Block, Buffer, Index, Let, Num, Space, Var
from kernelgen.nest.substitute import renamed
from kernelgen.nest.walk import Moved, move
from kernelgen.plan import CpuPlan
from kernelgen.poly.model.product_recognition import is_product
from kernelgen.poly.model.scop import Access, Blocks, BodyStatement, Iterator, Scop, Statement
from kernelgen.poly.model.window_recognition import rows_around_places
from kernelgen.tensor.dims import Shape, Sym, product
from kernelgen.tensor.dtypes import DType

LENGTHS = (64, 48, 32, 24, 16, 12, 8)
"""Rows of a tile of the last statements, the longest that fits first."""
SHORT = (6, 4)
"""The same where a device has no room for more."""
NUMBER = "tile"
"""What the iterator over tiles is called."""
LINE = 64
"""Bytes of a line of a cache."""
MOST_WORK = 1.5
"""Rows that producers compute, of those that there are, above which tiles compute too much twice."""


@dataclass(frozen=True)
class Tile:
    """The rows ``step * b + start <= i < step * b + start + length`` of tile ``b``."""

    step: int
    start: int
    length: int

    @property
    def is_part(self) -> bool:
        """Whether no row is in two tiles."""
        return (self.start, self.length) == (0, self.step)

    def first(self, tile: str) -> Index:
        """The first row of the tile that a variable counts."""
        return ix.add(ix.multiply(Var(tile), Num(self.step)), Num(self.start))

    def with_(self, other: Tile) -> Tile | None:
        """The tile that holds both; None where they do not move alike."""
        start, end = min(self.start, other.start), max(self.start + self.length, other.start + other.length)
        return Tile(self.step, start, end - start) if self.step == other.step else None


@dataclass(frozen=True)
class Reading:
    """A statement at row ``i`` reads the rows ``scale * i + low .. scale * i + high``."""

    scale: int
    low: int
    high: int

    def of(self, tile: Tile) -> Tile:
        """What is read for a tile."""
        length = self.scale * (tile.length - 1) + self.high - self.low + 1
        return Tile(self.scale * tile.step, self.scale * tile.start + self.low, length)


def overlap_tiles(scop: Scop, plan: CpuPlan) -> Scop:
    """The scop with stencils over tiles whose temporaries take about as many bytes as a ``plan`` has room for, as many for each
    of its threads; the same object where none pay.
    """
    chain = _Chain.of(scop)
    tiles = chain.best(plan.tile_room, plan.threads) if chain.rows else None
    return scop if tiles is None else chain.tiled(tiles)


@dataclass(frozen=True)
class Fitting:
    """What tiles of a device have to be: of no more than ``room`` bytes of temporaries, and at ``least`` so many of them."""

    room: int
    least: int


def fit_tiles(scop: Scop, fitting: Fitting) -> Scop:
    """The scop with stencils over tiles whose temporaries stay in a memory beside the processor that runs them.

    The same object where such tiles are too few, too large, or compute too much twice: the temporaries stay in the device's
    memory, and a launch follows on a launch.
    """
    chain = _Chain.of(scop)
    tiles = chain.fitting(fitting) if chain.rows else None
    return scop if tiles is None else chain.tiled(tiles)


@dataclass(frozen=True)
class _Chain:
    """The statements that run over rows of what others of them give, the name of each one's rows, and which dim they are.

    ``readers`` are the statements that read a buffer, with their accesses. Products are no part of it, since they share no
    loops: what they read leaves it.
    """

    scop: Scop
    rows: Mapping[str, str]
    dims: Mapping[str, int]
    readers: Mapping[str, tuple[tuple[Statement, Access], ...]]

    @staticmethod
    def of(scop: Scop) -> _Chain:
        """The chain of a scop; without statements where nobody reads shifted rows."""
        found: dict[str, list[tuple[Statement, Access]]] = {}
        for statement in scop.statements:
            for read in statement.reads:
                found.setdefault(read.buffer.name, []).append((statement, read))
        readers = {name: tuple(reads) for name, reads in found.items()}
        rows: dict[str, str] = {}
        dims: dict[str, int] = {}
        for statement in scop.statements:
            row = _row_of_reads(statement, dims) or _shifted_row(statement, readers)
            if row is None or not _is_by_rows(statement, row):
                continue
            if is_product(statement) and row not in rows_around_places(statement, scop.constants):
                continue
            rows[statement.name] = row
            for write in statement.writes:
                dims[write.buffer.name] = write.index.index(Var(row))
        return _Chain(scop, rows, dims, readers)

    def tiles(self, length: int) -> dict[str, Tile] | None:
        """The tile of each statement where the last ones have so many rows; None where something is asked for twice."""
        found: dict[str, Tile] = {}
        for statement in reversed(self.scop.statements):
            if statement.name not in self.rows:
                continue
            wanted = list(self._wanted(statement, found))
            leaves = any(self.leaves(write.buffer) for write in statement.writes)
            step = next((tile.step for tile in wanted if tile is not None), length)
            tile: Tile | None = Tile(step, 0, step) if leaves or not wanted else wanted.pop()
            for other in wanted:
                tile = None if tile is None or other is None else tile.with_(other)
            if tile is None:
                return None
            found[statement.name] = tile
        return found

    def _wanted(self, statement: Statement, tiles: Mapping[str, Tile]) -> Iterable[Tile | None]:
        """What readers in the chain ask of a statement."""
        for write in statement.writes:
            for reader, access in self.readers.get(write.buffer.name, ()):
                if reader.name in tiles:
                    reading = reading_of(reader, access.index[self.dims[write.buffer.name]], self.rows[reader.name])
                    yield None if reading is None else reading.of(tiles[reader.name])

    def leaves(self, buffer: Buffer) -> bool:
        """Whether somebody outside the chain sees it."""
        inside = all(reader.name in self.rows for reader, _ in self.readers.get(buffer.name, ()))
        return buffer.space is not Space.WORKSPACE or not inside

    def _held(self, tiles: Mapping[str, Tile]) -> dict[str, tuple[Buffer, Tile]]:
        """The temporaries of which rows are computed in several tiles."""
        found: dict[str, tuple[Buffer, Tile]] = {}
        for statement in self.scop.statements:
            tile = tiles.get(statement.name)
            for write in statement.writes:
                if tile is not None and not tile.is_part:
                    _, known = found.get(write.buffer.name, (write.buffer, tile))
                    found[write.buffer.name] = (write.buffer, known.with_(tile) or tile)
        return found

    def bytes(self, tiles: Mapping[str, Tile]) -> int:
        """What the temporaries of a tile take."""
        held = self._held(tiles).values()
        return sum(tile.length * _bytes(_pitched(self._row(b), b.dtype.itemsize), b.dtype) for b, tile in held)

    def _row(self, buffer: Buffer) -> Shape:
        return buffer.shape[self.dims[buffer.name] + 1 :]

    def best(self, room: int, threads: int) -> dict[str, Tile] | None:
        """The longest tiles that take no more than the room; where these compute too much twice, the shortest that do not.
        As many for each of the ``threads``, where there are rows enough.

        None where all rows together stay in the cache, in one turn of the loops around them.
        """
        lengths = (self._even_lengths(threads) if threads > 1 else ()) or LENGTHS
        found = [tiles for length in lengths if (tiles := self.tiles(length)) is not None and not self._wastes(tiles)]
        held = [buffer for buffer, _ in self._held(found[0]).values()] if found else []
        known = bool(found) and self._is_known(found[0])
        whole = sum(_bytes(buffer.shape[self.dims[buffer.name] :], buffer.dtype) for buffer in held)
        if not known or whole <= room:
            return None
        return next((tiles for tiles in found if self.bytes(tiles) <= room), found[-1])

    def _even_lengths(self, threads: int) -> tuple[int, ...]:
        """The lengths of tiles of which each thread has as many, the longest first: all but the last tile are of the same."""
        rows = max(self._extent(statement) for statement in self._last())
        lengths = dict.fromkeys(-(-rows // count) for count in range(threads, rows // LENGTHS[-1] + 1, threads))
        return tuple(length for length in lengths if length <= LENGTHS[0])

    def fitting(self, fitting: Fitting) -> dict[str, Tile] | None:
        """The longest tiles of those that fit; None where none do."""
        for length in (*LENGTHS, *SHORT):
            tiles = self.tiles(length)
            if tiles is None or self._wastes(tiles) or not self._held(tiles) or not self._is_known(tiles):
                continue
            if self.bytes(tiles) <= fitting.room and self._count(tiles) >= fitting.least:
                return tiles
        return None

    def _is_known(self, tiles: Mapping[str, Tile]) -> bool:
        """Whether numbers say how large the temporaries are."""
        return not any(isinstance(extent, Sym) for buffer, _ in self._held(tiles).values() for extent in buffer.shape)

    def _count(self, tiles: Mapping[str, Tile]) -> int:
        """How many tiles the last statements have."""
        return max(-(-self._extent(statement) // tiles[statement.name].step) for statement in self._last())

    def _last(self) -> Iterable[Statement]:
        """The statements of which somebody outside the chain sees something."""
        for statement in self.scop.statements:
            if statement.name in self.rows and any(self.leaves(write.buffer) for write in statement.writes):
                yield statement

    def _wastes(self, tiles: Mapping[str, Tile]) -> bool:
        """Whether too much is computed twice."""
        return any(tile.length > MOST_WORK * tile.step for _, tile in self._held(tiles).values())

    def tiled(self, tiles: Mapping[str, Tile]) -> Scop:
        """The scop over tiles."""
        count = self._count(tiles)
        held = {name: self._in_tiles(buffer, tile, count) for name, (buffer, tile) in self._held(tiles).items()}
        statements: list[Statement] = []
        for statement in self.scop.statements:
            if statement.name in tiles:
                statements += self._over_tiles(statement, tiles[statement.name], count, held)
            else:
                statements.append(statement)
        kept = (b for b in self.scop.buffers if b.name not in held or self.leaves(b))
        buffers = (*kept, *(each.buffer for each in held.values()))
        return replace(self.scop, buffers=buffers, statements=tuple(statements))

    def _in_tiles(self, buffer: Buffer, tile: Tile, count: int) -> Moved:
        """Tile after tile, of which one is alive at a time."""
        dim = self.dims[buffer.name]
        row = _pitched(self._row(buffer), buffer.dtype.itemsize)
        shape = (count, *buffer.shape[:dim], tile.length, *row)
        made = Buffer(
            f"{buffer.name}_tile" if self.leaves(buffer) else buffer.name, buffer.dtype, shape, Space.WORKSPACE
        )
        bases = {dim: tile.first(NUMBER)}
        return Moved(made, tuple(range(len(buffer.shape))), lead=(Var(NUMBER),), bases=bases)

    def _extent(self, statement: Statement) -> int:
        (extent,) = (it.extent for it in statement.iterators if it.name == self.rows[statement.name])
        assert isinstance(extent, int), "as asked before"
        return extent

    def _over_tiles(
        self, statement: Statement, tile: Tile, count: int, held: Mapping[str, Moved]
    ) -> Iterable[Statement]:
        """The statement over tiles; where some of it leaves, over the rows that are a tile's alone, and over the others."""
        row, rows = self.rows[statement.name], self._extent(statement)

        def over(part: Tile, body: Block) -> Statement:
            overlapping = None if part.is_part else (part.step, part.start)
            number = Iterator(NUMBER, count, Blocks(part.length, rows, row, overlapping))
            parts = tuple(each for each in body.statements if isinstance(each, BodyStatement))
            return replace(statement, iterators=_with(number, statement.iterators, row), body=parts)

        body = move(Block(statement.body), held)
        leaving = [
            store for store in statement.body if not isinstance(store, Let) and self._is_both(store.buffer, held)
        ]
        if not leaving:
            yield over(tile, body)
            return
        yield over(Tile(tile.step, 0, tile.step), Block((*body.statements, *leaving)))
        before = Tile(tile.step, tile.start, -tile.start)
        behind = Tile(tile.step, tile.step, tile.start + tile.length - tile.step)
        for part, suffix in ((before, "_before"), (behind, "_behind")):
            if part.length > 0:
                yield replace(over(part, renamed(body, suffix)), name=f"{statement.name}{suffix}")

    def _is_both(self, buffer: Buffer, held: Mapping[str, Moved]) -> bool:
        """Whether it is a tile's own and leaves too."""
        return buffer.name in held and self.leaves(buffer)


def _bytes(shape: Shape, dtype: DType) -> int:
    """What elements take; sizes that are not known count once."""
    elements = product(shape)
    return dtype.itemsize * (1 if isinstance(elements, Sym) else elements)


def _pitched(shape: Shape, itemsize: int) -> Shape:
    """The dims of a row, the last as long that rows begin with a line of a cache each, and not all in the same places of it.

    A vector that lies across two lines is read and stored twice. An odd number of lines is no divisor of the cache's.
    """
    if not shape or isinstance(shape[-1], Sym):
        return shape
    of_line = LINE // itemsize
    lines = -(-shape[-1] // of_line) | 1
    return (*shape[:-1], lines * of_line)


def _with(number: Iterator, iterators: tuple[Iterator, ...], row: str) -> tuple[Iterator, ...]:
    """The iterators with the number of the tile before its rows."""
    position = [it.name for it in iterators].index(row)
    return (*iterators[:position], number, *iterators[position:])


def reading_of(statement: Statement, index: Index, row: str) -> Reading | None:
    """Which rows an index reads; None where they are not an interval that moves with the statement's row."""
    extents = {it.name: it.extent for it in statement.iterators}
    scale = ix.stride(index, row)
    start = ix.substitute(index, {name: Num(0) for name in ix.variables(index)})
    if not scale or scale < 0 or not isinstance(start, Num):
        return None
    low = high = start.value
    for name in ix.variables(index) - {row}:
        step, extent = ix.stride(index, name), extents.get(name)
        if step is None or not isinstance(extent, int):
            return None
        low, high = low + min(0, step * (extent - 1)), high + max(0, step * (extent - 1))
    return Reading(scale, low, high)


def _row_of_reads(statement: Statement, dims: Mapping[str, int]) -> str | None:
    """The iterator that moves along the rows of what the chain gives; None where there is none, or several."""
    kept = {name for write in statement.writes for index in write.index for name in ix.variables(index)}
    found: set[str] = set()
    for read in statement.reads:
        if read.buffer.name in dims:
            found |= ix.variables(read.index[dims[read.buffer.name]]) & kept
    return found.pop() if len(found) == 1 else None


def _shifted_row(statement: Statement, readers: Mapping[str, tuple[tuple[Statement, Access], ...]]) -> str | None:
    """The iterator along the first dim of a result that somebody reads at another place than its own."""
    for write in statement.writes:
        for dim, index in enumerate(write.index):
            found = readers.get(write.buffer.name, ())
            reads = (read for reader, read in found if reader is not statement and not is_product(reader))
            if isinstance(index, Var) and any(not isinstance(read.index[dim], Var) for read in reads):
                return index.name
    return None


def _is_by_rows(statement: Statement, row: str) -> bool:
    """Whether a known number of rows addresses all that it writes, each its own."""
    extents = {it.name: it.extent for it in statement.iterators}
    is_free = not statement.ordered and all(it.blocks is None and it.name != NUMBER for it in statement.iterators)
    is_free = is_free and all(write.buffer.space is not Space.INOUT for write in statement.writes)
    single = all(
        write.index.count(Var(row)) == 1 and sum(row in ix.variables(i) for i in write.index) == 1
        for write in statement.writes
    )
    return is_free and isinstance(extents.get(row), int) and single
