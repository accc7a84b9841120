"""A kernel without a chip: the text is read back and simulated, and whatever the simulator finds is an error."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelgen.ascendc.instructions import Kernel
from kernelgen.ascendc.reader import read_kernel
from kernelgen.errors import ArgumentError, CodegenError, UnsupportedError
from kernelgen.machines.ascend.description import Machine
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.nest.nodes import Alloc, Buffer, Nest, Space
from kernelgen.nest.walk import statements
from kernelgen.simulators.ascendc import Report, simulate
from kernelgen.simulators.ascendc.launch import meets
from kernelgen.system.cached_property import cached_property
from kernelgen.targets.ascend.lower.launch import blocks_of, copies_of_locals
from kernelgen.targets.ascend.lower.program.scope import local_size, parameter_of
from kernelgen.targets.ascend.proof.kernel_features import features_of
from kernelgen.targets.ascend.proof.statement_count import statements_run
from kernelgen.targets.entries import Sample

STEP_LIMIT = 20_000_000

MOST_BYTES = 1 << 31
"""Of an array whose sizes are open."""

MOST_STATEMENTS = 200_000
"""Of all blocks of a sample: some seconds."""
LEAST_BLOCKS, MOST_SAMPLED = 2, 2_000_000
"""Blocks of a sample at least, and their statements at most: half a minute."""


@dataclass(frozen=True, eq=False)
class SimulatedEntry:
    """A kernel body; see :class:`kernelgen.targets.base.Entry`. ``reports`` holds the last run's."""

    source: str
    nest: Nest
    machine: Machine = ASCEND_910B
    reports: list[Report] = field(default_factory=list[Report], repr=False)

    def __call__(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> None:
        """Runs the kernel. Raises CodegenError with the findings where the run is not clean."""
        self._run(arrays, symbols, None)

    def _run(self, arrays: tuple[Any, ...], symbols: tuple[int, ...], only: Collection[int] | None) -> None:
        """Runs all blocks, or some."""
        sizes = self._sizes(symbols)
        if sizes:
            self._check_bytes(arrays)
        given = {parameter_of(b): _flat(array) for b, array in zip(self.nest.buffers, arrays, strict=True)}
        empty = frozenset(name for name, array in given.items() if not array.size)
        given = {name: np.zeros(32, array.dtype) if name in empty else array for name, array in given.items()}
        blocks = blocks_of(self.nest, self.machine, sizes)
        for buffer in self.locals:
            given[parameter_of(buffer)] = np.zeros(
                local_size(buffer) * copies_of_locals(self.kernel, blocks), buffer.dtype.numpy
            )
        spaces = {parameter_of(b): b.space for b in (*self.nest.buffers, *self.locals)}
        report = simulate(
            self.source,
            given,
            machine=self.machine,
            blocks=blocks,
            outputs=[name for name, space in spaces.items() if space is Space.OUTPUT and name not in empty],
            updated=[name for name, space in spaces.items() if space not in (Space.OUTPUT, Space.INPUT)],
            tiling=sizes,
            step_limit=STEP_LIMIT,
            only=only,
        )
        self.reports[:] = [report]
        if not report.clean:
            found = "\n".join(f"kernel {self.nest.name!r}: {finding}" for finding in report.findings)
            raise CodegenError(found, self.source)
        for buffer, array in zip(self.nest.buffers, arrays, strict=True):
            if buffer.space is not Space.INPUT and array.size:
                np.copyto(array, given[parameter_of(buffer)].reshape(array.shape))

    def sample(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> Sample:
        """Runs all blocks where that takes seconds, else the first, the last and some between; all, if half a minute will do,
        where some say nothing.

        Raises UnsupportedError("budget") where one takes minutes, or the cores wait for each other.
        """
        sizes = self._sizes(symbols)
        blocks = blocks_of(self.nest, self.machine, sizes)
        statements = statements_run(self.kernel, blocks, sizes)
        count = max(MOST_STATEMENTS * blocks // max(statements, 1), LEAST_BLOCKS)
        has_samples = count < blocks and self._has_samples
        if statements <= (MOST_STATEMENTS if has_samples else MOST_SAMPLED):
            self(arrays, symbols)
            return Sample((None,) * len(arrays), blocks, blocks)
        if not has_samples or count * statements > MOST_SAMPLED * blocks:
            raise UnsupportedError("budget", f"the blocks of kernel {self.nest.name!r} run {statements} statements")
        chosen = {k * (blocks - 1) // (count - 1) for k in range(count)}
        self._run(arrays, symbols, chosen)
        return Sample(self._final(arrays), len(chosen), blocks)

    @property
    def _has_samples(self) -> bool:
        """Whether blocks are on their own, and what a block writes is final."""
        own = all(buffer.space in (Space.INPUT, Space.OUTPUT) for buffer in self.nest.buffers)
        return own and not self.locals and not meets(self.kernel)

    def _final(self, arrays: tuple[Any, ...]) -> tuple[np.ndarray | None, ...]:
        """For each buffer, the elements that a sample has written."""
        written = self.reports[0].written or {}
        by_byte = [written.get(parameter_of(buffer)) for buffer in self.nest.buffers]
        return tuple(
            None if one is None else np.logical_and.reduce(one.reshape(-1, array.itemsize), axis=1)
            for one, array in zip(by_byte, arrays, strict=True)
        )

    def features(self, symbols: tuple[int, ...] = ()) -> frozenset[str]:
        """What the text does at these sizes."""
        sizes = self._sizes(symbols)
        return features_of(self.kernel, blocks_of(self.nest, self.machine, sizes), sizes)

    def _check_bytes(self, arrays: tuple[Any, ...]) -> None:
        """What a kernel for open sizes computes with them are integers of 32 bits: elements and bytes of its arrays."""
        for buffer, array in zip(self.nest.buffers, arrays, strict=True):
            if array.nbytes >= MOST_BYTES:
                message = f"{buffer.name} has {array.nbytes} bytes, kernels for open sizes take less than {MOST_BYTES}"
                raise ArgumentError(message)

    def _sizes(self, symbols: tuple[int, ...]) -> dict[str, int]:
        return dict(zip(self.nest.symbols, symbols, strict=True))

    @cached_property
    def kernel(self) -> Kernel:
        """What the text says."""
        return read_kernel(self.source)

    @cached_property
    def locals(self) -> tuple[Buffer, ...]:
        """Locals of the nest that have memory in GM, one copy for each core."""
        found = (part.buffer for part in statements(self.nest.body) if isinstance(part, Alloc))
        return tuple(buffer for buffer in found if parameter_of(buffer) in self.kernel.parameters)


def _flat(array: Any) -> np.ndarray:
    """A copy of an argument: arguments may overlap, a launch's buffers may not."""
    return np.ascontiguousarray(array).reshape(-1).copy()
