"""Squares of transposed accesses through shared memory, so that neighbouring threads touch neighbours on both sides.

    block j in 0..J                         block of a tile [j0, i0] of T x T, 32 x 8 threads
      block i in 0..I              ->         tile[r, c] = x[i0 + r, j0 + c]       tx along c: x is contiguous in j
        y[j, i] = f(x[i, j])                  sync
                                              y[j0 + r, i0 + c] = f(tile[c, r])    tx along c: y is contiguous in i

Stores that are contiguous in j go the other way, from a tile behind the iterations. Legality: iterations of block loops are
independent, so that their loads may come first and their stores last; a buffer that the launch writes is not loaded that way,
and one that it loads, or stores twice, not stored. A row of a tile is a bank longer than its elements, so that a column of it
lies in different banks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from kernelgen.machines.gpu.device import BANK_BYTES, WARP, GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import Place, loads_of, redirect
from kernelgen.transforms.gpu.delinearise import ITEM, block_loops, digits, divides, iterations, trips

ROWS = 8
"""Rows of a tile that a block of threads takes at once."""

SHORTEST = 8
"""A loop with fewer iterations would leave most of a tile empty."""

MANY = 8 * 64 * 64
"""Elements for each processor of a device, which are eight blocks with tiles of 64 x 64."""

ROW, COLUMN, PASS, PART = "row", "column", "pass", "part"


def tiled(grid: n.Grid, numbers: Iterator[int], device: GpuMachine) -> n.Grid | None:
    """The grid by tiles; None where no access is contiguous along another loop than the innermost one, or none pays.

    ``numbers`` name the tiles.
    """
    loops, inner = block_loops(grid.body)
    if grid.threads[0] > 1 or len(loops) < 2 or not all(isinstance(s, n.Let | n.Store) for s in inner.statements):
        return None
    turned = _turned(loops, inner)
    if not turned:
        return None
    sides = (2 * WARP, WARP) if _may_be_long(turned, loops, device.processors) else (WARP,)
    side = next((side for side in sides if _bytes(turned, side) <= device.tile_bytes), None)
    if side is None:
        return None
    loaded, stored = (
        {place: _tile(f"tile{next(numbers)}", place[0], side) for place in places}
        for places in (turned.loaded, turned.stored)
    )
    return _Tiler(tuple(loops), inner, turned, loaded, stored, side).grid(grid)


def _may_be_long(turned: _Turned, loops: Sequence[n.For], processors: int) -> bool:
    """Whether tiles may have runs of 64 elements, which memory likes: those of halves, or of many blocks."""
    long = min(_known(turned.along), _known(turned.across)) >= 2 * WARP
    narrow = all(place[0].dtype.itemsize <= 2 for place in turned.places)
    return long and (narrow or prod(map(_known, loops)) >= MANY * processors)


def _tile(name: str, buffer: n.Buffer, side: int) -> n.Buffer:
    return n.Buffer(name, buffer.dtype, (side, side + _padding(buffer)), n.Space.SHARED)


def _bytes(turned: _Turned, side: int) -> int:
    return sum(side * (side + _padding(buffer)) * buffer.dtype.itemsize for buffer, _ in turned.places)


@dataclass(frozen=True)
class _Turned:
    """The accesses that are contiguous along the loop ``across`` and strided along the innermost one, ``along``."""

    along: n.For
    across: n.For
    loaded: tuple[Place, ...]
    stored: tuple[Place, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        """All of them."""
        return (*self.loaded, *self.stored)


def _turned(loops: Sequence[n.For], inner: n.Block) -> _Turned | None:
    loads = dict.fromkeys((load.buffer, load.index) for part in inner.statements for load in loads_of(part))
    stores = Counter((part.buffer, part.index) for part in inner.statements if isinstance(part, n.Store))
    read, written = ({buffer.name for buffer, _ in places} for places in (loads, stores))
    along = loops[-1]
    loaded = {place: _contiguous(place, loops[:-1], along) for place in loads if place[0].name not in written}
    once = [place for place in stores if sum(stores[other] for other in stores if other[0] == place[0]) == 1]
    stored = {place: _contiguous(place, loops[:-1], along) for place in once if place[0].name not in read}
    chosen = Counter(loop.var for loop in (*loaded.values(), *stored.values()) if loop)
    if not chosen:
        return None
    (name, _), *_ = chosen.most_common(1)
    across = next(loop for loop in loops if loop.var == name)
    if min(_known(along), _known(across)) < SHORTEST:
        return None
    return _Turned(
        along, across, *(tuple(p for p, loop in found.items() if loop is across) for found in (loaded, stored))
    )


def _contiguous(place: Place, loops: Sequence[n.For], along: n.For) -> n.For | None:
    """The loop along whose iterations the place moves by one element, if ``along`` moves it in another dim."""
    buffer, index = place
    if buffer.space not in (n.Space.INPUT, n.Space.INOUT, n.Space.WORKSPACE, n.Space.OUTPUT) or not index:
        return None
    names = [ix.variables(i) for i in index]
    data = ix.is_by_data(*index)
    if data or along.var in names[-1] or not any(along.var in each for each in names[:-1]):
        return None
    for loop in loops:
        if ix.stride(index[-1], loop.var) == 1 and not any(loop.var in each for each in names[:-1]):
            return loop
    return None


def _known(loop: n.For) -> int:
    """The iterations of a loop; a symbol stands for many."""
    count = trips(loop)
    return count.value if isinstance(count, n.Num) else 1 << 30


def _padding(buffer: n.Buffer) -> int:
    return max(1, BANK_BYTES // buffer.dtype.itemsize)


@dataclass(frozen=True)
class _Tiler:
    loops: tuple[n.For, ...]
    inner: n.Block
    turned: _Turned
    loaded: dict[Place, n.Buffer]
    stored: dict[Place, n.Buffer]
    side: int

    def grid(self, grid: n.Grid) -> n.Grid:
        """A block for each tile: its loads, a barrier, its iterations; a barrier, its stores."""
        counted = [self.counted(loop) for loop in self.loops]
        total = iterations(counted)
        binds = [n.Bind(loop.var, place) for loop, place in zip(counted, digits(n.Var(ITEM), counted), strict=True)]
        along, across = self.turned.along, self.turned.across
        loads = n.Block(
            tuple(n.Store(tile, self.at(ROW, COLUMN), n.Load(*place)) for place, tile in self.loaded.items())
        )
        stores = n.Block(
            tuple(n.Store(*place, n.Load(tile, self.at(ROW, COLUMN))) for place, tile in self.stored.items())
        )
        parts: list[n.Statement] = [n.Bind(ITEM, n.Var(n.BLOCK_INDEX)), *binds]
        parts += map(n.Alloc, (*self.loaded.values(), *self.stored.values()))
        parts += [self.passes(along, across, loads), n.Sync()] if self.loaded else []
        parts.append(self.passes(across, along, self.led()))
        parts += [n.Sync(), self.passes(along, across, stores)] if self.stored else []
        return replace(grid, blocks=total, threads=(WARP, ROWS), body=n.Block(tuple(parts)))

    def counted(self, loop: n.For) -> n.For:
        """A loop over tiles in place of the loops that tiles cover."""
        if loop not in (self.turned.along, self.turned.across):
            return loop
        return replace(loop, var=_start(loop), step=self.side)

    def passes(self, down: n.For, right: n.For, body: n.Block) -> n.Statement:
        """The body for every element of the tile: ``down`` runs along its rows, ``right`` along a row."""
        x, y = map(n.Var, n.THREAD_INDICES)
        guards = [
            n.Compare("<", n.Var(loop.var), loop.upper)
            for loop in (down, right)
            if not divides(self.side, ix.subtract(loop.upper, loop.lower))
        ]
        binds = [
            n.Bind(loop.var, ix.add(n.Var(_start(loop)), n.Var(name))) for loop, name in ((down, ROW), (right, COLUMN))
        ]
        guarded = n.Block((n.If(tuple(guards), body),)) if guards else body
        inner = n.Block((*binds, *guarded.statements))
        column = n.Bind(COLUMN, ix.add(ix.multiply(n.Var(PART), n.Num(WARP)), x))
        if self.side == WARP:
            inner = n.Block((n.Bind(COLUMN, x), *inner.statements))
        else:
            inner = n.Block(
                (
                    n.For(
                        PART,
                        n.Num(0),
                        n.Num(self.side // WARP),
                        n.Block((column, *inner.statements)),
                        n.LoopKind.UNROLL,
                    ),
                )
            )
        row = n.Bind(ROW, ix.add(ix.multiply(n.Var(PASS), n.Num(ROWS)), y))
        return n.For(PASS, n.Num(0), n.Num(self.side // ROWS), n.Block((row, *inner.statements)), n.LoopKind.UNROLL)

    def at(self, row: str, column: str) -> tuple[n.Index, ...]:
        return n.Var(row), n.Var(column)

    def led(self) -> n.Block:
        """The iteration with its turned accesses in the tiles."""

        place = self.at(COLUMN, ROW)
        loaded, stored = ({at: (tile, place) for at, tile in tiles.items()} for tiles in (self.loaded, self.stored))
        return redirect(self.inner, lambda *at: loaded.get(at), lambda *at: stored.get(at))


def _start(loop: n.For) -> str:
    """The name of a tile's first iteration."""
    return f"{loop.var}_start"
