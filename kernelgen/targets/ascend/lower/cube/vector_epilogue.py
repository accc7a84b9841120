"""Vector work behind a product takes its tiles as they come, from the cube core of its own block.

    block i in 0..M: vector j in 0..N {           block v in 0..2 * items {           item v / 2, half v % 2 of its rows
      y[i, j] = f(t[i, j], bias[j])         ->      for tile in 0..reach {            CrossCoreWaitFlag
    }                                                 rows i in the half: vector j in the tile { y[i, j] = ... }

Block b of B has items b, b + B, ... of the product, and both of its vector cores take the same ones: a tile is waited for
by those alone who read it. Legal where every iteration reads t at its own place only, and writes its own element of every
other array: iterations are independent then, and may be taken in any order. Tiles must be equally wide, so that rows of
tiles have one length; a core has ``MOST_TILES`` at most, as the cube core does not wait and a counter holds no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.nest.index import add, floor_divide, minimum, modulo, multiply, substitute, substitute_in, subtract
from kernelgen.nest.nodes import Block, Compare, For, If, Index, Let, LoopKind, Num, Statement, Store, Var
from kernelgen.nest.walk import loads_of
from kernelgen.targets.ascend.lower.cube.product import Axis, Product
from kernelgen.targets.ascend.lower.cube.tile_sizes import LEFT, RIGHT, Sizes, item_extents
from kernelgen.transforms.common.iteration_box import boxes, placed, whole_axes

PIECE, TILE = "piece", "followed_tile"
"""Variables of the loops over halves of items, and over an item's tiles."""
MOST_TILES = 15


@dataclass(unsafe_hash=True)
class TilesAsTheyCome(For):
    """The loop over an item's tiles: each turn waits until the cube core has made its tile."""


def follower(product: Product, sizes: Sizes, cores: int, part: Block) -> Block | None:
    """The part in the order of the product's tiles; None where it must wait for all of them."""
    axes = [*product.batch, product.row, product.column]
    items = 1
    for extent in item_extents(product, sizes):
        items *= extent.value if isinstance(extent, Num) else MOST_TILES * cores + 1
    known = all(isinstance(axis.extent, Num) for axis in axes)
    width = _value(product.column.extent)
    ragged = width > sizes.columns and width % sizes.columns != 0
    if not known or ragged or product.fractal or -(-items // cores) * sizes.reach > MOST_TILES:
        return None
    found = [one for one in placed(part)]
    loops = max((one.loops for one in found), key=len)
    chain = all(one.loops == loops[: len(one.loops)] for one in found)
    body = tuple(one.statement for one in found)
    names = _names(product, body, boxes(loops)) if chain else None
    return None if names is None else _in_tiles(product, sizes, items, names, body)


def _names(product: Product, body: Sequence[Statement], box: dict[str, Index] | None) -> dict[str, str] | None:
    """Axis of the product -> loop of the part; None where the part is not element by element."""
    if box is None or not all(isinstance(one, Let | Store) for one in body):
        return None
    ours = whole_axes(product.index, {axis.name: axis.extent for axis in (*product.batch, product.row, product.column)})
    stores = [one for one in body if isinstance(one, Store)]
    read = [load for one in body for load in loads_of(one)]
    found = [load.index for load in read if load.buffer == product.result]
    stored = {one.buffer.name for one in stores}
    if ours is None or not stores or len(set(found)) != 1 or stored & {load.buffer.name for load in read}:
        return None
    theirs = [whole_axes(index, box) for index in (found[0], *(one.index for one in stores))]
    if any(names is None or set(names) != set(box) for names in theirs) or len(ours) != len(box):
        return None
    pairs = dict(zip(ours, theirs[0] or (), strict=True))
    extents = {axis.name: axis.extent for axis in (*product.batch, product.row, product.column)}
    return pairs if all(extents[name] == box[pairs[name]] for name in ours) else None


def _in_tiles(product: Product, sizes: Sizes, items: int, names: dict[str, str], body: tuple[Statement, ...]) -> Block:
    """The loops over pieces, tiles, rows and columns."""
    *batch, i, j = _digits(floor_divide(Var(PIECE), Num(2)), item_extents(product, sizes))
    tile: Index = Var(TILE)
    down = add(multiply(i, Num(sizes.reach)), tile) if sizes.kept == RIGHT else i
    right = add(multiply(j, Num(sizes.reach)), tile) if sizes.kept == LEFT else j
    half = sizes.rows // 2
    low = add(multiply(down, Num(sizes.rows)), multiply(modulo(Var(PIECE), Num(2)), Num(half)))
    left = multiply(right, Num(sizes.columns))
    columns = _columns(product, sizes.columns, left, names[product.column.name], body)
    end = _end(product.row, low, half)
    inner: Statement = For(names[product.row.name], low, end, Block((columns,)), LoopKind.ROWS)
    if 0 < _value(product.row.extent) % sizes.rows <= half:  # the last piece has no rows
        inner = If((Compare("<", low, product.row.extent),), Block((inner,)))
    for axis, value in zip(reversed(product.batch), reversed(batch), strict=True):
        inner = For(names[axis.name], value, add(value, Num(1)), Block((inner,)))
    inner = TilesAsTheyCome(TILE, Num(0), _reach(product, sizes, i, j), Block((inner,)))
    return Block((For(PIECE, Num(0), Num(2 * items), Block((inner,)), LoopKind.BLOCK),))


def _columns(product: Product, size: int, left: Index, name: str, body: tuple[Statement, ...]) -> For:
    """The columns of a tile, counted from 0, so that their number is known."""
    moved: dict[str, Index] = {name: add(left, Var(name))}
    shifted = tuple(_shifted(one, moved) for one in body)
    return For(name, Num(0), Num(min(size, _value(product.column.extent))), Block(shifted), LoopKind.VECTOR)


def _shifted(one: Statement, moved: dict[str, Index]) -> Statement:
    match one:
        case Let(name, value):
            return Let(name, substitute_in(value, moved))
        case Store(buffer, index, value):
            return Store(buffer, tuple(substitute(at, moved) for at in index), substitute_in(value, moved))
        case _:
            return one


def _value(extent: Index) -> int:
    return extent.value if isinstance(extent, Num) else 0


def _digits(number: Index, extents: Sequence[Index]) -> list[Index]:
    """The number in a mixed base, the last digit the fastest."""
    found: list[Index] = []
    for extent in reversed(extents[1:]):
        found.insert(0, modulo(number, extent))
        number = floor_divide(number, extent)
    return [number, *found]


def _end(axis: Axis, start: Index, size: int) -> Index:
    """Where a stretch ends that begins inside of the axis."""
    end = add(start, Num(size))
    whole = isinstance(axis.extent, Num) and axis.extent.value % size == 0
    return end if whole else minimum(axis.extent, end)


def _reach(product: Product, sizes: Sizes, i: Index, j: Index) -> Index:
    """The tiles of an item."""
    axis, size, item = (product.row, sizes.rows, i) if sizes.kept == RIGHT else (product.column, sizes.columns, j)
    total = floor_divide(add(axis.extent, Num(size - 1)), Num(size))
    whole = isinstance(total, Num) and total.value % sizes.reach == 0
    return Num(sizes.reach) if whole else minimum(Num(sizes.reach), subtract(total, multiply(item, Num(sizes.reach))))
