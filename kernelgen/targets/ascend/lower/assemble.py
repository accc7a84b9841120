"""A nest as a kernel: promotion at the largest turn that fits, order of copies, storage, double buffer, synchronisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelgen.ascendc.builder import Tensor, make_call
from kernelgen.ascendc.conversions import converted
from kernelgen.ascendc.expressions import Core, Number
from kernelgen.ascendc.instructions import AIC_ONLY, AIV_ONLY, If, Kernel, LocalTensor, Statement, Tiling
from kernelgen.ascendc.scopes import check_names
from kernelgen.ascendc.types import POSITION_OF, UB
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.nodes import Nest
from kernelgen.targets.ascend.lower.cube.core_plan import Plan, plan_of
from kernelgen.targets.ascend.lower.cube.cube_kernel import cube_core
from kernelgen.targets.ascend.lower.element_types import check_element_types
from kernelgen.targets.ascend.lower.order.program_layout import SAMPLE, layout_of
from kernelgen.targets.ascend.lower.order.synchronise import synchronise
from kernelgen.targets.ascend.lower.program import storage
from kernelgen.targets.ascend.lower.program.scope import parameter_of
from kernelgen.targets.ascend.lower.program.writer import Program, Tile
from kernelgen.targets.ascend.lower.promote_tiles import TILING
from kernelgen.targets.ascend.lower.tile_lengths import fitted
from kernelgen.tensor.dtypes import INT16


def assemble(nest: Nest, machine: Machine, doubled: bool = True, levels: tuple[str, ...] = storage.LEVELS) -> Kernel:
    """The kernel of a nest. Raises UnsupportedError where the machine has no instructions, or no room, for it."""
    program, layout = _primed(*fitted(nest, machine, doubled, levels))
    tensors = {tensor.name: tensor for tensor in program.tensors}
    fields = {name: SAMPLE[k % len(SAMPLE)] for k, name in enumerate(nest.symbols)}
    tiles = {tile.name: tile for tile in program.tiles}
    body = synchronise(program.body, layout_of(program.body, tiles, layout.addresses, tensors, fields), machine)
    plan = plan_of(nest, machine)
    vector = (*_tiles(program, layout), *body)
    whole = _on_cores(plan, vector, cube_core(nest, plan, program.tensors, fields, machine))
    start = [make_call("InitSocState"), *program.tensors]
    end = make_call("PipeBarrier", ("PIPE_ALL",))
    tiling = Tiling(f"{nest.name}_tiling", TILING, nest.symbols) if nest.symbols else None
    kernel = Kernel(nest.name, parameters(nest, program), tiling, plan.kind, (*start, *whole, end))
    check_names(kernel)
    check_element_types(kernel, machine)
    return converted(kernel)


def _on_cores(plan: Plan, vector: tuple[Statement, ...], cube: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """What each kind of core does; a branch where a kernel has both."""
    if plan.kind == AIV_ONLY:
        return vector
    return cube if plan.kind == AIC_ONLY else (If(Core("ASCEND_IS_AIC"), cube, vector),)


def _tiles(program: Program, layout: storage.Layout) -> Iterator[LocalTensor]:
    sizes = {tile.name: tile for tile in program.tiles}
    for tile in program.tiles:
        base = sizes[tile.alias] if tile.alias else tile
        if base.name in layout.addresses:
            elements = base.size * base.copies // tile.dtype.itemsize
            yield LocalTensor(
                tile.name, tile.dtype, POSITION_OF[UB], Number(layout.addresses[base.name]), Number(elements)
            )


def _primed(program: Program, layout: storage.Layout) -> tuple[Program, storage.Layout]:
    """Zeros where instructions take whole repeats and copies fill less: the bytes of all such tiles, each once."""
    spans: list[tuple[int, int]] = []
    for tile in sorted(program.tiles, key=lambda one: layout.addresses.get(one.name, 0)):
        if not tile.primed or tile.name not in layout.addresses:
            continue
        low, high = layout.addresses[tile.name], layout.addresses[tile.name] + tile.size * tile.copies
        if spans and low <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(high, spans[-1][1]))
        else:
            spans.append((low, high))
    zeros = [Tile(f"zero_{k}", INT16, (high - low) // INT16.itemsize) for k, (low, high) in enumerate(spans)]
    fills = [make_call("Duplicate", dst=Tensor(tile.name, INT16), scalar=0, count=tile.elements) for tile in zeros]
    addresses = {tile.name: low for tile, (low, _) in zip(zeros, spans, strict=True)}
    primed = replace(program, tiles=(*program.tiles, *zeros), body=(*fills, *program.body))
    return primed, replace(layout, addresses={**layout.addresses, **addresses})


def parameters(nest: Nest, program: Program) -> tuple[str, ...]:
    """The kernel's parameters: the nest's buffers in order, then what its locals need in GM."""
    own = [parameter_of(buffer) for buffer in nest.buffers]
    return (*own, *(tensor.parameter for tensor in program.tensors if tensor.parameter not in own))
