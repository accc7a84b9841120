"""Squares of transposed accesses through shared memory, so that neighbouring threads touch neighbours on both sides.

    block j in 0..J                         block of a tile [j0, i0] of T x T, 32 x 8 threads
      block i in 0..I              ->         tile[r, c] = x[i0 + r, j0 + c]       tx along c: x is contiguous in j
        y[j, i] = f(x[i, j])                  sync
                                              y[j0 + r, i0 + c] = f(tile[c, r])    tx along c: y is contiguous in i

Legality: iterations of block loops are independent, so that their loads may come first; a buffer that the launch writes is
not loaded that way. A row of a tile is a bank longer than its elements, so that a column of it lies in different banks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgen.nest import index as ix
from kernelgen.nest.items import ITEM, block_loops, digits, divides, trips
from kernelgen.nest.nodes import (
    BLOCK_INDEX,
    THREAD_INDICES,
    Alloc,
    Bind,
    Block,
    Buffer,
    Compare,
    Expr,
    For,
    Grid,
    If,
    Index,
    Let,
    Load,
    LoopKind,
    Num,
    Space,
    Statement,
    Store,
    Sync,
    Var,
)
from kernelgen.nest.walk import loads_of, map_expressions, stored_buffers

WARP = 32
ROWS = 8
"""Rows of a tile that a block of threads takes at once."""

BANK_BYTES = 4
SHORTEST = 16
"""A loop with fewer iterations would leave most of a tile empty."""

MOST_BYTES = 24 * 1024
"""Shared memory for all tiles of a block, so that eight blocks fit a multiprocessor."""

ROW, COLUMN, PASS, PART = "row", "column", "pass", "part"


def tiled(grid: Grid) -> Grid | None:
    """The grid by tiles; None where no access is contiguous along another loop than the innermost one, or none pays."""
    loops, inner = block_loops(grid.body)
    if grid.threads[0] > 1 or len(loops) < 2 or not all(isinstance(s, Let | Store) for s in inner.statements):
        return None
    turned = _turned(loops, inner)
    if not turned:
        return None
    wide = all(place[0].dtype.itemsize <= 2 for place in turned.places)
    long = min(_known(turned.along), _known(turned.across)) >= 2 * WARP
    side = 2 * WARP if wide and long else WARP
    tiles = {
        place: Buffer(f"tile{k}", place[0].dtype, (side, side + _padding(place[0])), Space.SHARED)
        for k, place in enumerate(turned.places)
    }
    if sum(side * (side + _padding(tile)) * tile.dtype.itemsize for tile in tiles.values()) > MOST_BYTES:
        return None
    return _Tiler(tuple(loops), inner, turned, tiles, side).grid(grid)


Place = tuple[Buffer, tuple[Index, ...]]


@dataclass(frozen=True)
class _Turned:
    """The loads that are contiguous along the loop ``across`` and strided along the innermost one, ``along``."""

    along: For
    across: For
    places: tuple[Place, ...]


def _turned(loops: Sequence[For], inner: Block) -> _Turned | None:
    written = stored_buffers(inner)
    places = list(dict.fromkeys((load.buffer, load.index) for part in inner.statements for load in loads_of(part)))
    along = loops[-1]
    found = {place: loop for place in places if (loop := _contiguous(place, loops[:-1], along)) is not None}
    found = {place: loop for place, loop in found.items() if place[0].name not in written}
    if not found:
        return None
    (name, _), *_ = Counter(loop.var for loop in found.values()).most_common(1)
    across = next(loop for loop in loops if loop.var == name)
    if min(_known(along), _known(across)) < SHORTEST:
        return None
    return _Turned(along, across, tuple(place for place, loop in found.items() if loop is across))


def _contiguous(place: Place, loops: Sequence[For], along: For) -> For | None:
    """The loop along whose iterations the place moves by one element, if ``along`` moves it in another dim."""
    buffer, index = place
    if buffer.space not in (Space.INPUT, Space.INOUT, Space.WORKSPACE, Space.OUTPUT) or not index:
        return None
    names = [ix.variables(i) for i in index]
    data = any(True for i in index for _ in ix.values(i))
    if data or along.var in names[-1] or not any(along.var in each for each in names[:-1]):
        return None
    for loop in loops:
        if ix.stride(index[-1], loop.var) == 1 and not any(loop.var in each for each in names[:-1]):
            return loop
    return None


def _known(loop: For) -> int:
    """The iterations of a loop; a symbol stands for many."""
    count = trips(loop)
    return count.value if isinstance(count, Num) else 1 << 30


def _padding(buffer: Buffer) -> int:
    return max(1, BANK_BYTES // buffer.dtype.itemsize)


@dataclass(frozen=True)
class _Tiler:
    loops: tuple[For, ...]
    inner: Block
    turned: _Turned
    tiles: dict[Place, Buffer]
    side: int

    def grid(self, grid: Grid) -> Grid:
        """A block for each tile: its loads, a barrier, its iterations."""
        counted = [self.counted(loop) for loop in self.loops]
        total: Index = Num(1)
        for loop in counted:
            total = ix.multiply(total, trips(loop))
        binds = [Bind(loop.var, place) for loop, place in zip(counted, digits(Var(ITEM), counted), strict=True)]
        along, across = self.turned.along, self.turned.across
        loads = Block(tuple(Store(tile, self.at(ROW, COLUMN), Load(*place)) for place, tile in self.tiles.items()))
        body = Block(
            (
                Bind(ITEM, Var(BLOCK_INDEX)),
                *binds,
                *map(Alloc, self.tiles.values()),
                self.passes(along, across, loads),
                Sync(),
                self.passes(across, along, self.led()),
            )
        )
        return replace(grid, blocks=total, threads=(WARP, ROWS), body=body)

    def counted(self, loop: For) -> For:
        """A loop over tiles in place of the loops that tiles cover."""
        if loop not in (self.turned.along, self.turned.across):
            return loop
        return replace(loop, var=_start(loop), step=self.side)

    def passes(self, down: For, right: For, body: Block) -> Statement:
        """The body for every element of the tile: ``down`` runs along its rows, ``right`` along a row."""
        x, y = map(Var, THREAD_INDICES)
        guards = [
            Compare("<", Var(loop.var), loop.upper)
            for loop in (down, right)
            if not divides(self.side, ix.subtract(loop.upper, loop.lower))
        ]
        binds = [Bind(loop.var, ix.add(Var(_start(loop)), Var(name))) for loop, name in ((down, ROW), (right, COLUMN))]
        guarded = Block((If(tuple(guards), body),)) if guards else body
        inner = Block((*binds, *guarded.statements))
        column = Bind(COLUMN, ix.add(ix.multiply(Var(PART), Num(WARP)), x))
        if self.side == WARP:
            inner = Block((Bind(COLUMN, x), *inner.statements))
        else:
            inner = Block(
                (For(PART, Num(0), Num(self.side // WARP), Block((column, *inner.statements)), LoopKind.UNROLL),)
            )
        row = Bind(ROW, ix.add(ix.multiply(Var(PASS), Num(ROWS)), y))
        return For(PASS, Num(0), Num(self.side // ROWS), Block((row, *inner.statements)), LoopKind.UNROLL)

    def at(self, row: str, column: str) -> tuple[Index, ...]:
        return Var(row), Var(column)

    def led(self) -> Block:
        """The iteration with loads from the tiles."""

        def load(expr: Expr) -> Expr:
            tile = self.tiles.get((expr.buffer, expr.index)) if isinstance(expr, Load) else None
            return Load(tile, self.at(COLUMN, ROW)) if tile else expr

        mapped = map_expressions(self.inner, load)
        return mapped if isinstance(mapped, Block) else self.inner


def _start(loop: For) -> str:
    """The name of a tile's first iteration."""
    return f"{loop.var}_start"
