"""What the cube cores of a kernel do: every product's program, its tensors in L1 and L0, flags, meetings.

Products run one after the other, with a barrier of all pipes between them; each has the memories to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelgen.ascendc.expressions import Expression, Field, Number
from kernelgen.ascendc.instructions import GlobalTensor, LocalTensor, Statement
from kernelgen.ascendc.types import POSITION_OF
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.nodes import Nest
from kernelgen.nest.ranges import Range
from kernelgen.targets.ascend.lower.cube.core_plan import CUBE, Plan, meet
from kernelgen.targets.ascend.lower.cube.product import Product
from kernelgen.targets.ascend.lower.cube.product_program import CubeProgram
from kernelgen.targets.ascend.lower.cube.tile_sizes import choose
from kernelgen.targets.ascend.lower.order.program_layout import layout_of
from kernelgen.targets.ascend.lower.order.synchronise import synchronise
from kernelgen.targets.ascend.lower.program.writer import Tile, Writer

TILING = "tiling"


def cube_core(
    nest: Nest,
    plan: Plan,
    tensors: Sequence[GlobalTensor],
    fields: Mapping[str, int],
    machine: Machine,
) -> tuple[Statement, ...]:
    """The statements of a cube core; ``fields`` are sample values of the tiling struct for the order proof."""
    writer = Writer()
    found = {tensor.name.removesuffix("_gm"): tensor for tensor in tensors}
    addresses: dict[str, int] = {}
    for part in plan.parts:
        for meeting in part.meetings:
            meet(writer, meeting, CUBE)
        if part.product is not None:
            before = set(writer.tiles)
            _write(part.product, part.handshake, nest, machine, writer, found)
            addresses |= _addresses([tile for name, tile in writer.tiles.items() if name not in before])
    body = tuple(writer.blocks[0])
    globals_ = {tensor.name: tensor for tensor in tensors}
    layout = layout_of(body, writer.tiles, addresses, globals_, fields)
    return (*_declared(writer.tiles, addresses), *synchronise(body, layout, machine))


def _write(
    product: Product,
    handshake: int | None,
    nest: Nest,
    machine: Machine,
    writer: Writer,
    tensors: Mapping[str, GlobalTensor],
) -> None:
    names: dict[str, Expression] = {symbol: Field(TILING, symbol) for symbol in nest.symbols}
    ranges = {symbol: Range(1) for symbol in nest.symbols}
    axes = (*product.batch, product.row, product.column, *product.sums, product.depth)
    ranges |= {axis.name: Range(0) for axis in axes}
    CubeProgram(product, choose(product, machine), machine, writer, tensors, names, ranges, handshake=handshake).write()


def _addresses(tiles: Sequence[Tile]) -> dict[str, int]:
    """One behind the other in each memory; all are whole fractals."""
    free: dict[str, int] = {}
    found: dict[str, int] = {}
    for tile in tiles:
        found[tile.name] = free.get(tile.memory, 0)
        free[tile.memory] = found[tile.name] + tile.size * tile.copies
    return found


def _declared(tiles: Mapping[str, Tile], addresses: Mapping[str, int]) -> Iterator[LocalTensor]:
    for name, tile in tiles.items():
        size = tile.size * tile.copies // tile.dtype.itemsize
        yield LocalTensor(name, tile.dtype, POSITION_OF[tile.memory], Number(addresses[name]), Number(size))
