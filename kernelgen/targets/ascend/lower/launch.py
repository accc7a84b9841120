"""What a launch of a nest's kernel needs: how many blocks, which memory of its own, the fields of the tiling struct."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.ascendc.instructions import MIX, Kernel
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.extents import extent
from kernelgen.nest.index import add, floor_divide, subtract
from kernelgen.nest.nodes import For, LoopKind, Nest, Num
from kernelgen.targets.ascend.lower.cube.core_plan import plan_of
from kernelgen.targets.ascend.lower.cube.tile_sizes import items_of


def blocks_of(nest: Nest, machine: Machine, symbols: Mapping[str, int]) -> int:
    """Cores that have something to do: the most turns of a loop that is dealt to them, no more than there are.

    A block of a kernel with products is a cube core, or a cube core with two vector cores.
    """
    plan = plan_of(nest, machine)
    turns = [1]
    for part in plan.parts:
        only = part.block.statements[0]
        if part.product is None and isinstance(only, For) and only.kind is LoopKind.BLOCK:
            trips = floor_divide(add(subtract(only.upper, only.lower), Num(only.step - 1)), Num(only.step))
            turns.append(extent(trips, symbols))
    items = [extent(items_of(product, machine), symbols) for product in plan.products]
    if not items:
        return min(max(turns), machine.cores)
    return min(max(*items, -(-max(turns) // 2)), machine.cube_cores)


def copies_of_locals(kernel: Kernel, blocks: int) -> int:
    """Vector cores of a launch, each of which has its own copy of a local in GM."""
    return 2 * blocks if kernel.kind == MIX else blocks
