"""Turns grids that compute matrix products into tiles of results: operands in shared memory, results in registers.

    grid of 48 blocks of 256 x 1 threads {
      bind tile_row = bx / 6; bind tile_column = bx % 6
      fetch the first tiles of left and right                  start copying the first three tiles
      for tile in 0..K / 16 {                             or   for tile in 0..K / 32 {
        put them into half tile % 2 of the shared arrays         await the copies of this tile
        sync                                                     sync
        fetch the next ones into registers                       start copying the one three tiles ahead
        multiply half tile % 2                                   multiply stage tile % 4
      }
      the tail, for each of a thread's results
    }

Half precision that is added up in float32 goes to tensor cores: their products are exact and their sums are float32, as the
description says. Everything else is multiplied by threads. The sizes of tiles come from a count of waves of blocks.

The order of one barrier for each tile: half h is filled in turn t, read in turn t, and filled again in turn t + 2, behind
the barrier of turn t + 1, to which every thread comes after it has read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from kernelgen.machines.gpu.device import GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import Moved, move
from kernelgen.tensor.dims import product as product_of_dims
from kernelgen.tensor.dtypes import FLOAT32, DType
from kernelgen.transforms.gpu.delinearise import digits, iterations
from kernelgen.transforms.gpu.product_recognition import Product, product_of
from kernelgen.transforms.gpu.register_tiles import SIDE, MicroTiles
from kernelgen.transforms.gpu.shared_tiles import Panel, lies_along_terms, unrolled
from kernelgen.transforms.gpu.tensor_core_tiles import COLUMNS, ROWS, WarpTiles
from kernelgen.transforms.gpu.vector_accesses import LANE, neighbours, widened

TILE, STAGE, ROW, COLUMN = "tile", "stage", "row", "column"
TILE_ROW, TILE_COLUMN = "tile_row", "tile_column"
ROW_START, COLUMN_START = "row_start", "column_start"

MOST_STAGES = 4
"""Pairs of tiles in shared memory at once: one is multiplied, the others are on their way."""

MICRO = ((8, 8), (4, 8), (4, 4), (2, 4), (1, 4), (2, 2), (1, 2))
"""Rows and columns of a thread."""

WARPS = ((2, 4, 4, 8), (2, 4, 4, 4), (2, 2, 4, 4), (2, 2, 2, 4), (1, 4, 1, 2), (2, 2, 1, 2))
"""Warps down and across, and the instructions of each: tiles of 128 x 256, 128 x 128, 128 x 64, 64 x 64, 16 x 64, 32 x 32."""


def product_tiles(nest: n.Nest, device: GpuMachine) -> n.Nest:
    """The nest, cut into grids that are not distributed yet, with its products in tiles."""
    numbers = count()
    parts = [_tiled(part, device, numbers) if isinstance(part, n.Grid) else part for part in nest.body.statements]
    return replace(nest, body=n.Block(tuple(parts)))


def _tiled(grid: n.Grid, device: GpuMachine, numbers: Iterator[int]) -> n.Grid:
    product = product_of(grid)
    if product is None:
        return grid
    name = f"product{next(numbers)}"
    half = _half_precision(product, device.matrices)
    many = device.processors
    engine = _micro(product, name, many) if half is None else _warps(product, name, half, many)
    return _Tiling(product, engine, name, half is not None, device, numbers).grid(grid)


def _half_precision(product: Product, matrices: frozenset[DType]) -> DType | None:
    """The 16-bit type of both factors, where they are added up in float32 and a warp multiplies its matrices."""
    found = {_cast_from(factor) for factor in (product.left, product.right)}
    kind = found.pop()
    return kind if not found and kind in matrices and product.total.dtype == FLOAT32 else None


def _cast_from(factor: n.Expr) -> DType | None:
    return factor.args[0].dtype if isinstance(factor, n.Call) and factor.function == "cast" else None


# ---------------------------------------------------------------- sizes


def _micro(product: Product, name: str, processors: int) -> MicroTiles:
    """Per product of two numbers a thread does one multiplication; it reads groups of four of its rows and columns."""

    def cost(size: tuple[int, int]) -> float:
        down, across = size
        work = down * across + 2 * (-(-down // 4) + -(-across // 4))
        return _waves(product, down * SIDE, across * SIDE, processors) * work

    down, across = min(MICRO, key=cost)
    return MicroTiles(name, down, across, product.total.dtype)


def _warps(product: Product, name: str, dtype: DType, processors: int) -> WarpTiles:
    """The cost of a tile is what it reads and what it multiplies; a tensor core multiplies far faster than a warp reads."""

    def cost(size: tuple[int, int, int, int]) -> float:
        down, across, rows, columns = size
        height, width = down * rows * ROWS, across * columns * COLUMNS
        return _waves(product, height, width, processors) * (height * width / 32 + height + width)

    down, across, rows, columns = min(WARPS, key=cost)
    return WarpTiles(name, down, across, rows, columns, dtype)


def _waves(product: Product, height: int, width: int, processors: int) -> int:
    """How often all processors take a block; for unknown sizes many of them have enough."""
    tiles = _tiles(product, height, width)
    return -(-tiles.value // processors) if isinstance(tiles, n.Num) else -(-(1 << 20) // (height * width))


def _tiles(product: Product, height: int, width: int) -> n.Index:
    rows, columns = _parts(iterations(product.rows), height), _parts(iterations(product.columns), width)
    return ix.multiply(ix.multiply(iterations(product.batch), rows), columns)


def _parts(extent: n.Index, size: int) -> n.Index:
    return ix.floor_divide(ix.add(extent, n.Num(size - 1)), n.Num(size))


# ---------------------------------------------------------------- the program of a thread


@dataclass(frozen=True)
class _Tiling:
    product: Product
    engine: MicroTiles | WarpTiles
    name: str
    by_cores: bool
    device: GpuMachine
    numbers: Iterator[int]

    @property
    def height(self) -> int:
        """Rows of a tile."""
        engine = self.engine
        return engine.down * engine.rows * ROWS if isinstance(engine, WarpTiles) else engine.down * SIDE

    @property
    def width(self) -> int:
        """Columns of a tile."""
        engine = self.engine
        return engine.across * engine.columns * COLUMNS if isinstance(engine, WarpTiles) else engine.across * SIDE

    @property
    def depth(self) -> int:
        """Terms of a tile: 64 bytes of each row, or what two halves of two panels leave of 48 KB."""
        if self.by_cores:
            return 32
        return 8 if self.product.total.dtype.itemsize > 4 else 16

    def grid(self, grid: n.Grid) -> n.Grid:
        """The grid in tiles."""
        product = self.product
        left = self.panel("left", product.left, product.rows, self.height, ROW_START)
        right = self.panel("right", product.right, product.columns, self.width, COLUMN_START)
        is_direct = self.device.async_copies and left.is_direct and right.is_direct
        sums = self.copied(left, right) if is_direct else self.staged(left, right)
        body = n.Block((*self.places(), *self.engine.begin(), *sums, *self.engine.finish(self.finished)))
        blocks = _tiles(product, self.height, self.width)
        return replace(grid, blocks=blocks, threads=(self.engine.threads, 1), body=body)

    def staged(self, left: Panel, right: Panel) -> list[n.Statement]:
        """The sums; operands come through registers, one tile ahead."""
        half, following = n.Var(STAGE), ix.multiply(ix.add(n.Var(TILE), n.Num(1)), n.Num(self.depth))
        turn = n.Block((
            n.Bind(STAGE, ix.modulo(n.Var(TILE), n.Num(2))),
            left.put(half),
            right.put(half),
            n.Sync(),
            left.fetch(following),
            right.fetch(following),
            *self.engine.multiply(left, right, half),
        ))  # fmt: skip
        first = [left.fetch(n.Num(0)), right.fetch(n.Num(0))]
        return [*left.allocations(), *right.allocations(), *first, n.For(TILE, n.Num(0), self.turns, turn)]

    def copied(self, left: Panel, right: Panel) -> list[n.Statement]:
        """The sums; operands are copied while others are multiplied, as many tiles ahead as shared memory holds.

        The groups of copies are one for each tile, so that all but the last ``stages - 2`` are awaited in each turn. The
        place of the tile that starts then was read one turn before, in front of the barrier.
        """
        stages = max(
            2,
            min(
                MOST_STAGES,
                self.device.product_bytes // (_bytes_of_half(left) + _bytes_of_half(right)),
            ),
        )
        left, right = replace(left, stages=stages), replace(right, stages=stages)
        ahead = ix.add(n.Var(TILE), n.Num(stages - 1))
        turn = n.Block((
            n.AwaitCopies(stages - 2),
            n.Sync(),
            *self.started(left, right, ix.modulo(ahead, n.Num(stages)), ahead),
            n.Bind(STAGE, ix.modulo(n.Var(TILE), n.Num(stages))),
            *self.engine.multiply(left, right, n.Var(STAGE)),
        ))  # fmt: skip
        first = unrolled(STAGE, stages - 1, *self.started(left, right, n.Var(STAGE), n.Var(STAGE)))
        return [n.Alloc(left.shared), n.Alloc(right.shared), first, n.For(TILE, n.Num(0), self.turns, turn)]

    def started(self, left: Panel, right: Panel, stage: n.Index, tile: n.Index) -> list[n.Statement]:
        """The copies of a tile, as a group."""
        first = ix.multiply(tile, n.Num(self.depth))
        return [left.start_copies(stage, first), right.start_copies(stage, first), n.CommitCopies()]

    @property
    def turns(self) -> n.Index:
        """The number of tiles of terms."""
        return _parts(iterations(self.product.sums), self.depth)

    def panel(self, side: str, value: n.Expr, loops: tuple[n.For, ...], extent: int, start: str) -> Panel:
        """One operand; for tensor cores as it is before it is cast."""
        inner = False
        if self.by_cores and isinstance(value, n.Call):
            value = value.args[0]
            inner = lies_along_terms(value, loops, self.product.sums)
        name = f"{self.name}_{side}"
        return Panel(
            name, value, loops, self.product.sums, extent, self.depth, self.engine.threads, n.Var(start), inner
        )

    def places(self) -> Iterator[n.Statement]:
        """Which tile this block computes: neighbouring blocks have neighbouring columns."""
        product = self.product
        rows, columns = _parts(iterations(product.rows), self.height), _parts(iterations(product.columns), self.width)
        radices = [
            *product.batch,
            n.For(TILE_ROW, n.Num(0), rows, n.Block()),
            n.For(TILE_COLUMN, n.Num(0), columns, n.Block()),
        ]
        for loop, digit in zip(radices, digits(n.Var(n.BLOCK_INDEX), radices), strict=True):
            yield n.Bind(loop.var, digit)
        yield n.Bind(ROW_START, ix.multiply(n.Var(TILE_ROW), n.Num(self.height)))
        yield n.Bind(COLUMN_START, ix.multiply(n.Var(TILE_COLUMN), n.Num(self.width)))

    def finished(self, row: n.Index, column: n.Index, place: tuple[n.Index, ...], count: int) -> list[n.Statement]:
        """The tail for ``count`` neighbours of a row: with wide accesses where they are aligned, else one by one."""
        product = self.product
        tail = _with_total(n.Block(product.tail), product.total, self.engine.results, place)
        last = product.columns[-1]
        rows = [n.Bind(loop.var, at) for loop, at in zip(product.rows, digits(n.Var(ROW), product.rows), strict=True)]
        places = digits(n.Var(COLUMN), product.columns)
        columns = [n.Bind(loop.var, at) for loop, at in zip(product.columns, places, strict=True)]
        head: list[n.Statement] = [n.Bind(ROW, ix.add(n.Var(ROW_START), row))]
        if count > 1 and neighbours([tail], [last.var], last.upper, n.Num(0), 1) >= count:
            wide = widened(tail, last.var, places[-1], count, self.numbers)
            body: list[n.Statement] = [*rows, *columns[:-1], *wide]
            return [*head, n.Bind(COLUMN, ix.add(n.Var(COLUMN_START), column)), *self.guarded(body)]
        each = ix.add(ix.add(n.Var(COLUMN_START), column), n.Var(LANE))
        return [*head, unrolled(LANE, count, n.Bind(COLUMN, each), *self.guarded([*rows, *columns, *tail.statements]))]

    def guarded(self, body: list[n.Statement]) -> list[n.Statement]:
        """The body for results that there are; runs of neighbours divide the columns."""
        sides = ((ROW, self.product.rows, self.height), (COLUMN, self.product.columns, self.width))
        conditions = tuple(
            n.Compare("<", n.Var(name), iterations(loops))
            for name, loops, size in sides
            if not _divides(size, iterations(loops))
        )
        return [n.If(conditions, n.Block(tuple(body)))] if conditions else body


def _bytes_of_half(panel: Panel) -> int:
    size = product_of_dims(panel.shared.shape[1:])
    assert isinstance(size, int)
    return size * panel.value.dtype.itemsize


def _divides(size: int, extent: n.Index) -> bool:
    return isinstance(extent, n.Num) and extent.value % size == 0


def _with_total(block: n.Block, total: n.Buffer, results: n.Buffer, place: tuple[n.Index, ...]) -> n.Block:
    """The block with a thread's result in place of the total."""
    return move(block, {total.name: Moved(results, (), place)})
