"""Cuts a product into tiles: what fits L0A, L0B, L0C and L1, and of that what the time model finds shortest.

A tile is ``rows x columns`` sums in L0C. Its factors come to L1 in steps of ``deep`` and to L0A and L0B in steps of
``step`` along the depth, each twice, so that the next is on its way while one is used. One factor may be kept in L1
(``kept``) for ``reach`` tiles, which then read only the other one: with 128 KB of sums, reading both takes longer than
multiplying. Sizes that are not known are taken to be large.

    L0A: 2 x rows x step     L0B: 2 x step x columns     L0C: rows x columns of float32
    L1:  2 x (rows + columns) x deep, or the kept factor's rows x depth and twice the other's
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kernelgen.ascendc.types import L0A, L0B, L0C, L1
from kernelgen.machines.ascend.description import Machine, Rates
from kernelgen.nest.index import add, floor_divide, multiply
from kernelgen.nest.nodes import Index, Num
from kernelgen.targets.ascend.lower.cube.product import SIDE, Axis, Product

HALF = 2
"""Bytes of a factor's element."""
SUM = 4
"""Bytes of a sum."""
MOST = 512
"""Rows or columns of a tile at most."""
UNKNOWN = 4096
"""What an extent is taken to be that the description leaves open."""
NONE, LEFT, RIGHT = "none", "left", "right"
LONGEST = 16
"""Tiles of one kept factor at most."""


@dataclass(frozen=True)
class Sizes:
    """How a product is cut; all but ``reach`` in elements."""

    rows: int
    columns: int
    step: int
    deep: int
    kept: str = NONE
    reach: int = 1

    @property
    def along_rows(self) -> int:
        """Tiles that a core takes one below the other."""
        return self.reach if self.kept == RIGHT else 1

    @property
    def along_columns(self) -> int:
        """Tiles that a core takes beside each other."""
        return self.reach if self.kept == LEFT else 1


@dataclass(frozen=True)
class Problem:
    """The extents of a product; ``known`` says of rows and depth whether they are more than a guess."""

    batch: int
    rows: int
    columns: int
    depth: int
    sums: int
    out: int
    known_rows: bool
    known_depth: bool


def problem_of(product: Product) -> Problem:
    """The extents of a product, with guesses where they are open."""
    batch, sums = 1, 1
    for axis in product.batch:
        batch *= axis.extent.value if isinstance(axis.extent, Num) else 1
    for axis in product.sums:
        sums *= axis.extent.value if isinstance(axis.extent, Num) else 1
    return Problem(
        batch,
        _guess(product.row),
        _guess(product.column),
        _guess(product.depth),
        sums,
        product.result.dtype.itemsize,
        isinstance(product.row.extent, Num),
        isinstance(product.depth.extent, Num),
    )


def _guess(axis: Axis) -> int:
    return axis.extent.value if isinstance(axis.extent, Num) else UNKNOWN


@dataclass(frozen=True)
class Unit:
    """What of a machine decides: bytes of its memories, cube cores, rates."""

    l0a: int
    l0b: int
    l0c: int
    l1: int
    cores: int
    rates: Rates


def unit_of(machine: Machine) -> Unit:
    """The cube unit of a machine."""
    memories = machine.memories
    return Unit(memories[L0A], memories[L0B], memories[L0C], memories[L1], machine.cube_cores, machine.rates)


def choose(product: Product, machine: Machine) -> Sizes:
    """The sizes of the least estimated time; among equals the first, with the larger tiles."""
    return _best(problem_of(product), unit_of(machine))


@lru_cache(maxsize=256)
def _best(problem: Problem, unit: Unit) -> Sizes:
    return min(candidates(problem, unit), key=lambda sizes: estimate(sizes, problem, unit))


def candidates(problem: Problem, unit: Unit) -> Iterator[Sizes]:
    """All sizes that fit, larger tiles first."""
    sums = unit.l0c // SUM
    for rows in range(min(MOST, up(problem.rows)), 0, -SIDE):
        if problem.known_rows and rows > 1 and problem.rows % rows == 1:
            continue
        for columns in range(min(MOST, up(problem.columns), sums // rows // SIDE * SIDE), 0, -SIDE):
            step = min(unit.l0a // rows, unit.l0b // columns) // (2 * HALF) // SIDE * SIDE
            if step:
                yield from _deep(problem, unit, Sizes(rows, columns, min(step, up(problem.depth)), 0))


def _deep(problem: Problem, unit: Unit, tile: Sizes) -> Iterator[Sizes]:
    """The tile with steps of several lengths through L1, without and with a factor that is kept there."""
    room = unit.l1 // HALF
    depth = up(problem.depth)
    for times in (8, 4, 2, 1):
        deep = min(tile.step * times, -(-depth // tile.step) * tile.step)
        if 2 * (tile.rows + tile.columns) * deep <= room:
            yield Sizes(tile.rows, tile.columns, tile.step, deep)
        if problem.sums > 1 or not problem.known_depth or times > 4:
            continue
        for kept, own, other, count in (
            (LEFT, tile.rows, tile.columns, -(-problem.columns // tile.columns)),
            (RIGHT, tile.columns, tile.rows, -(-problem.rows // tile.rows)),
        ):
            if own * -(-depth // deep) * deep + 2 * other * deep <= room:
                for reach in _reaches(min(count, LONGEST)):
                    yield Sizes(tile.rows, tile.columns, tile.step, deep, kept, reach)


def _reaches(count: int) -> list[int]:
    """Numbers of tiles, of equal ones the least: what else deals them to as many items."""
    return sorted({-(-count // items) for items in range(1, count)} - {1})


def up(size: int) -> int:
    """The size in whole fractals."""
    return -(-size // SIDE) * SIDE


def estimate(sizes: Sizes, problem: Problem, unit: Unit) -> float:
    """Cycles of a product (``problem``) with tiles of these ``sizes`` on all cube cores: of the slowest core the
    busiest pipe of its ``unit``, and what is not hidden behind it.

    MTE2: a factor that is kept with an item's first tile only; MTE1 and M: a step each ``step``; FIX: a tile's sums.
    One turn of the pipe that is less busy, and the last tile's way out, overlap nothing.
    """
    rates = unit.rates
    down, right = -(-problem.rows // sizes.rows), -(-problem.columns // sizes.columns)
    items = problem.batch * -(-down // sizes.along_rows) * -(-right // sizes.along_columns)
    waves = -(-items // unit.cores)
    share = rates.matrix_copy
    depth = up(problem.depth) * problem.sums
    turns = -(-problem.depth // sizes.deep) * problem.sums
    left = HALF * sizes.rows * depth / share + turns * rates.copy_start
    other = HALF * sizes.columns * depth / share + turns * rates.copy_start
    steps = -(-problem.depth // sizes.step) * problem.sums
    fractals = sizes.rows // SIDE * (sizes.columns // SIDE) * (depth // SIDE)
    multiplied = steps * rates.mmad_start + fractals
    moved = HALF * depth * (sizes.rows / rates.load_a + sizes.columns / rates.load_b)
    loaded = moved + 2 * steps * rates.load_start
    out = rates.copy_start + sizes.rows * sizes.columns * problem.out / min(rates.copy_one_core, rates.fixpipe)
    busy = max(multiplied, loaded)
    later = max({NONE: 0.0, LEFT: other, RIGHT: left}[sizes.kept], busy, out)
    pipelined = waves * (max(left + other, busy) + (sizes.reach - 1) * later)
    filling = min(left + other, busy) / max(turns, 1)
    return rates.copy_start + filling + pipelined + out


def items_of(product: Product, machine: Machine) -> Index:
    """How many pieces of work a product has for the cores, over the size symbols."""
    found: Index = Num(1)
    for extent in item_extents(product, choose(product, machine)):
        found = multiply(found, extent)
    return found


def item_extents(product: Product, sizes: Sizes) -> tuple[Index, ...]:
    """How many items there are along each batch axis, the rows, and the columns, the last the fastest."""
    down = _tiles(product.row, sizes.rows * sizes.along_rows)
    right = _tiles(product.column, sizes.columns * sizes.along_columns)
    return (*(axis.extent for axis in product.batch), down, right)


def _tiles(axis: Axis, size: int) -> Index:
    return floor_divide(add(axis.extent, Num(size - 1)), Num(size))
