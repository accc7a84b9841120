"""A nest as a kernel: promotion at the largest turn that fits, order of copies, storage, double buffer, synchronisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelgen.dtypes import INT16
from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import Alloc, Nest
from kernelgen.nest.walk import statements
from kernelgen.targets.ascend.build import Tensor, make_call
from kernelgen.targets.ascend.expressions import Number
from kernelgen.targets.ascend.instructions import AIV_ONLY, Call, For, If, Kernel, LocalTensor, Statement, Tiling
from kernelgen.targets.ascend.lower import storage
from kernelgen.targets.ascend.lower.copies import order_copies
from kernelgen.targets.ascend.lower.double_buffer import double_buffer
from kernelgen.targets.ascend.lower.promote import TILING, Promotion, Unaligned, local_size, parameter_of
from kernelgen.targets.ascend.lower.synchronise import synchronise
from kernelgen.targets.ascend.lower.trace import SAMPLE, Layout, mixed_buffers
from kernelgen.targets.ascend.lower.writer import Program, Tile
from kernelgen.targets.ascend.machine import Machine
from kernelgen.targets.ascend.types import POSITION_OF, UB

TURNS = (8192, 4096, 2048, 1024, 512, 256, 128)
"""Lanes of a turn that are tried: 8192 of float32 are copies of 32 KB, twice what reaches the full bandwidth."""
LEAST_DOUBLED = 1024
"""Lanes below which one long turn is better than two short ones that overlap."""


def assemble(nest: Nest, machine: Machine, doubled: bool = True, levels: tuple[str, ...] = storage.LEVELS) -> Kernel:
    """The kernel of a nest. Raises UnsupportedError where the machine has no instructions, or no room, for it."""
    program, layout = _primed(*_fitted(nest, machine, doubled, levels))
    tensors = {tensor.name: tensor for tensor in program.tensors}
    fields = {name: SAMPLE[k % len(SAMPLE)] for k, name in enumerate(nest.symbols)}
    tiles = {tile.name: tile for tile in program.tiles}
    mixed = mixed_buffers(program.body, tuple(tensors))
    body = synchronise(program.body, Layout(tiles, layout.addresses, tensors, fields, mixed), machine)
    start = [make_call("InitSocState"), *program.tensors, *_tiles(program, layout)]
    end = make_call("PipeBarrier", ("PIPE_ALL",))
    tiling = Tiling(f"{nest.name}_tiling", TILING, nest.symbols) if nest.symbols else None
    return Kernel(nest.name, parameters(nest, program), tiling, AIV_ONLY, (*start, *body, end))


def _fitted(nest: Nest, machine: Machine, doubled: bool, levels: tuple[str, ...]) -> tuple[Program, storage.Layout]:
    """The program of the largest turn that fits, with two copies of what is copied where they fit too."""
    outside: frozenset[str] = frozenset()
    locals_ = sorted(
        (part.buffer for part in statements(nest.body) if isinstance(part, Alloc)),
        key=lambda b: (-local_size(b), b.name),
    )
    while True:
        try:
            found = _first_fit(nest, machine, outside, doubled, levels)
        except Unaligned as local:
            outside |= {local.name}
            continue
        left = [buffer.name for buffer in locals_ if buffer.name not in outside]
        if found is not None:
            return found
        if not left:
            raise UnsupportedError("too-large", f"the tiles of {nest.name} do not fit the unified buffer")
        outside |= {left[0]}


def _first_fit(
    nest: Nest, machine: Machine, outside: frozenset[str], doubled: bool, levels: tuple[str, ...]
) -> tuple[Program, storage.Layout] | None:
    """Two copies where pipes share nothing and copies are long enough to matter; else one copy, as much as fits."""
    apart = tuple(level for level in levels if level != storage.ALL)
    ways = [(turn, True, apart) for turn in TURNS if doubled and turn >= LEAST_DOUBLED]
    ways += [(turn, False, levels) for turn in TURNS]
    programs: dict[int, Program] = {}
    for turn, twice, allowed in ways:
        if turn not in programs:
            programs[turn] = order_copies(Promotion(nest, machine, turn, outside).program())
        program = double_buffer(programs[turn]) if twice else programs[turn]
        layout = storage.place(program, _room(program, machine), allowed)
        if layout is not None:
            return program, layout
    return None


def _room(program: Program, machine: Machine) -> int:
    """Bytes of the unified buffer; a Select takes the end of it."""
    selects = any(isinstance(s, Call) and s.operation == "Select" for s in _flat(program.body))
    return machine.memories[UB] - (machine.select_reserve if selects else 0)


def _flat(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from _flat(statement.body)
        elif isinstance(statement, If):
            yield from _flat(statement.then)


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
