"""Launches a kernel: memory for it, its blocks in gangs, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.errors import ArgumentError
from kernelgen.simulators.common.findings import Stop
from kernelgen.simulators.ptx.instructions.access import space_of
from kernelgen.simulators.ptx.instructions.operands import Scope
from kernelgen.simulators.ptx.language.nodes import Address, Instruction, Kernel, Module, Symbol, Variable
from kernelgen.simulators.ptx.language.parser import parse
from kernelgen.simulators.ptx.language.types import is_type, width_of
from kernelgen.simulators.ptx.machine.arguments import Argument, bind
from kernelgen.simulators.ptx.machine.assembled import assembled
from kernelgen.simulators.ptx.machine.flow import Chunk, chunks_of, unsure_registers
from kernelgen.simulators.ptx.machine.machine import Machine
from kernelgen.simulators.ptx.machine.report import Report
from kernelgen.simulators.ptx.machine.steps import Step, prepare
from kernelgen.simulators.ptx.state.counters import Counts, Tally, class_of
from kernelgen.simulators.ptx.state.findings import Findings
from kernelgen.simulators.ptx.state.lanes import MOST_BLOCKS, MOST_THREADS, Lanes, extent
from kernelgen.simulators.ptx.state.memory import (
    LOCAL_BASE,
    LOCAL_NAME,
    MIDDLE,
    RANGE_BITS,
    RED_ZONE,
    SHARED_BASE,
    SHARED_NAME,
    SHARED_RANGE,
    Layout,
    Memory,
    Region,
    give_back,
    lay_out,
)
from kernelgen.simulators.ptx.state.race_detector import Shadow
from kernelgen.simulators.ptx.state.release_acquire import Publications
from kernelgen.simulators.ptx.state.state import State

GANG_LANES = 8192
STEP_LIMIT = 2_000_000
PARAMETER_BASE = (SHARED_RANGE + 2) << RANGE_BITS | MIDDLE
MODULE_RANGE = SHARED_RANGE + 3


@dataclass(frozen=True)
class Program:
    """A kernel ready to run, with the layout of its variables."""

    kernel: Kernel
    chunks: tuple[Chunk, ...]
    steps: tuple[Step, ...]
    slots: Mapping[str, int]
    shared: Layout
    local: Layout
    parameters: Layout
    module_regions: tuple[Region, ...]
    words: Mapping[str, int]


def run(
    ptx: str | Module,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[Argument],
    *,
    kernel: str = "",
    dynamic_shared: int = 0,
    blocks: int | Sequence[int] | None = None,
    seed: int | None = None,
    step_limit: int = STEP_LIMIT,
) -> Report:
    """Runs one kernel of a PTX text; arrays among the arguments are read and written as a device would.

    ``kernel`` may be left out where the text has one. ``dynamic_shared`` is the size in bytes of the shared array that is
    declared without one. ``blocks`` runs only some: so many, spread over the grid with its first and last, or exactly
    those. ``seed`` shuffles the order of the blocks. ``step_limit`` bounds the instructions of a gang of blocks. Raises
    PtxError for text that the interpreter does not know, ArgumentError for wrong arguments; faults of the kernel are
    findings of the report.
    """
    module = parse(ptx) if isinstance(ptx, str) else ptx
    chosen = _choose(module, kernel)
    sizes, threads = extent(grid), extent(block)
    if threads[0] * threads[1] * threads[2] > MOST_THREADS:
        raise ArgumentError(f"a block of {threads} has more than {MOST_THREADS} threads")
    numbers = _block_numbers(sizes[0] * sizes[1] * sizes[2], blocks, seed)
    values, buffers = bind(chosen, arguments)
    program = _program(module, chosen, dynamic_shared)
    launch = _Launch(program, values, [region for region, _ in buffers])
    completed = launch.run(numbers, sizes, threads, step_limit)
    written: list[np.ndarray] = []
    for region, array in buffers:
        if array is not None:
            give_back(region, array)
            written.append(launch.written(region))
    return Report(
        findings=launch.findings.all(),
        completed=completed,
        kernel=chosen.name,
        grid=sizes,
        block=threads,
        blocks=numbers,
        counts=launch.counts(),
        written=tuple(written),
    )


class _Launch:
    """The buffers and totals that all gangs of a launch share."""

    def __init__(self, program: Program, values: Sequence[bytes], buffers: Sequence[Region]) -> None:
        self._program = program
        self._values = values
        self._globals = [*buffers, *program.module_regions]
        self._shadows = {region.name: Shadow(region.size, program.words["global"]) for region in self._globals}
        self._tally = Tally()
        self._read_only: dict[str, Instruction] = {}
        self._publications = Publications()
        for shadow in self._shadows.values():
            shadow.excuse = self._publications.orders
        self.findings = Findings()

    def run(self, numbers: Sequence[int], grid: tuple[int, int, int], block: tuple[int, int, int], limit: int) -> bool:
        """Every gang in turn; False if a finding stopped the launch."""
        try:
            with np.errstate(all="ignore"):
                for first, part in _gangs(numbers, block):
                    lanes = Lanes(grid, block, part, first)
                    Machine(self._state(lanes, numbers), self._program.steps, limit).run()
        except Stop:
            return False
        finally:
            self._check_read_only()
        return True

    def written(self, region: Region) -> np.ndarray:
        """Which bytes of a buffer are stored to, other than by atomic operations."""
        shadow = self._shadows[region.name]
        stored = shadow.writer != 0
        if shadow.has_atomics:
            stored &= shadow.atomic == 0
        return np.repeat(stored, shadow.word)[: region.size]

    def counts(self) -> Counts:
        """The totals so far."""
        instructions, program = Counter[str](), self._program
        machine: dict[str, float] = {}
        for at, times in self._tally.runs.items():
            chunk = program.chunks[at]
            for instruction in program.kernel.instructions[chunk.start : chunk.stop]:
                instructions[class_of(instruction)] += times
                for name, number in assembled(instruction).items():
                    machine[name] = machine.get(name, 0) + number * times
        approximate = {
            ".".join(instruction.opcode[:2])
            for instruction in program.kernel.instructions
            if {"approx", "full"} & set(instruction.opcode)
        }
        return Counts(
            dict(sorted(instructions.items())),
            dict(sorted(self._tally.traffic.items())),
            self._tally.barriers,
            tuple(sorted(approximate)),
            dict(sorted(self._tally.sectors.items())),
            dict(sorted(machine.items())),
        )

    def _state(self, lanes: Lanes, running: Sequence[int]) -> State:
        program, words = self._program, self._program.words
        shared = Region(
            SHARED_NAME, "shared", SHARED_BASE, program.shared.size, len(lanes.blocks), holes=program.shared.holes
        )
        local = Region(LOCAL_NAME, "local", LOCAL_BASE, program.local.size, lanes.count)
        parameters = Region("parameters", "param", PARAMETER_BASE, program.parameters.size)
        for variable, value in zip(program.kernel.parameters, self._values, strict=True):
            start = program.parameters.addresses[variable.name] - PARAMETER_BASE
            parameters.storage[start : start + len(value)] = np.frombuffer(value, np.uint8)
        shadows = {
            **self._shadows,
            shared.name: Shadow(len(shared.storage), words["shared"]),
            local.name: Shadow(len(local.storage), words["local"]),
        }
        kernel = program.kernel
        widths = [width_of(kernel.registers[name]) for name in program.slots]
        memory = Memory([*self._globals, shared, local, parameters])
        return State(
            lanes, running, widths, memory, shadows, self.findings, self._tally, self._read_only, self._publications
        )

    def _check_read_only(self) -> None:
        """A buffer that ld.global.nc reads must not be written in the same launch."""
        for name, instruction in self._read_only.items():
            if self._shadows[name].writer.any():
                self.findings.add("read-only-written", instruction, "the launch", f"{name} is also written")


def _choose(module: Module, name: str) -> Kernel:
    if not name and len(module.kernels) == 1:
        return next(iter(module.kernels.values()))
    if name not in module.kernels:
        raise ArgumentError(f"no kernel {name!r} in this text; it has {', '.join(module.kernels)}")
    return module.kernels[name]


def _program(module: Module, kernel: Kernel, dynamic_shared: int) -> Program:
    variables = (*module.variables, *kernel.variables)
    names = _mentioned(kernel)
    shared = lay_out(
        [one for one in variables if one.space == "shared" and one.name in names], SHARED_BASE, dynamic_shared, RED_ZONE
    )
    local = lay_out([one for one in variables if one.space == "local"], LOCAL_BASE)
    parameters = lay_out(kernel.parameters, PARAMETER_BASE)
    regions = tuple(
        _module_region(number, one)
        for number, one in enumerate(one for one in variables if one.space in ("global", "const"))
    )
    addresses = {**shared.addresses, **local.addresses, **parameters.addresses}
    addresses |= {region.name: region.base for region in regions}
    chunks = chunks_of(kernel)
    slots = {name: number for number, name in enumerate(kernel.registers)}
    widths = {name: width_of(kind) for name, kind in kernel.registers.items()}
    scope = Scope(slots, widths, addresses, unsure_registers(kernel, chunks))
    steps = prepare(kernel, chunks, scope)
    return Program(kernel, chunks, steps, slots, shared, local, parameters, regions, _words(kernel))


def _module_region(number: int, variable: Variable) -> Region:
    region = Region(variable.name, variable.space, (MODULE_RANGE + number) << RANGE_BITS | MIDDLE, variable.size)
    data = variable.data or b""
    region.storage[: len(data)] = np.frombuffer(data, np.uint8)
    return region


def _mentioned(kernel: Kernel) -> frozenset[str]:
    """The variables that the instructions name: those of other kernels of the module take no room."""
    operands = [operand for instruction in kernel.instructions for operand in instruction.operands]
    bases = [operand.base if isinstance(operand, Address) else operand for operand in operands]
    return frozenset(base.name for base in bases if isinstance(base, Symbol))


def _words(kernel: Kernel) -> Mapping[str, int]:
    """The narrowest access of each space in bytes: races are looked for in words of this size.

    A generic address may lead anywhere, so it counts for every space.
    """
    words = {"global": 16, "shared": 16, "local": 16}
    for instruction in kernel.instructions:
        if instruction.opcode[0] in ("ld", "ldu", "st", "atom", "red", "cp"):
            kind = instruction.opcode[-1]
            width = max(width_of(kind) // 8, 1) if is_type(kind) else 4
            named = space_of(instruction)
            for space in words if not named or instruction.opcode[0] == "cp" else {named} & words.keys():
                words[space] = min(words[space], width)
    return words


def _block_numbers(total: int, wanted: int | Sequence[int] | None, seed: int | None) -> tuple[int, ...]:
    """The blocks to run, in order."""
    if (total if wanted is None else wanted if isinstance(wanted, int) else len(wanted)) > MOST_BLOCKS:
        raise ArgumentError(f"of {total} blocks more than {MOST_BLOCKS} run, which the race check can tell apart")
    if wanted is None:
        numbers = np.arange(total)
    elif isinstance(wanted, int):
        numbers = np.unique(np.linspace(0, total - 1, min(wanted, total)).round().astype(np.int64))
    else:
        numbers = np.asarray(wanted, np.int64)
        if len(numbers) == 0 or numbers.min() < 0 or numbers.max() >= total:
            raise ArgumentError(f"blocks {list(wanted)} are not all of the grid's {total}")
    if seed is not None:
        numbers = np.random.default_rng(seed).permutation(numbers)
    return tuple(int(number) for number in numbers)


def _gangs(numbers: Sequence[int], block: tuple[int, int, int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Blocks that run as one vector, and the place of the first of them."""
    size = max(GANG_LANES // (block[0] * block[1] * block[2]), 1)
    for start in range(0, len(numbers), size):
        yield start, tuple(numbers[start : start + size])
