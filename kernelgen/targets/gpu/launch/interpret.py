"""A kernel without a device: its launches in the PTX interpreter, whose findings are errors.

The interpreter runs every thread of every block and watches each access, so it is for small arrays: it shows that a kernel
is right, and counts what it does, but is no way to compute. Of a kernel with large arrays it runs a sample of blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from kernelgen.errors import CodegenError, UnsupportedError
from kernelgen.machines.gpu.timed import MACHINES
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import Grid, Nest, Space
from kernelgen.simulators.ptx import Blank, Report, parse, run
from kernelgen.system.cached_property import cached_property
from kernelgen.targets.entries import Estimate, Sample
from kernelgen.targets.gpu.dialects.program import Launch, launches, written
from kernelgen.targets.gpu.launch.cubins import cached_cubin
from kernelgen.targets.gpu.launch.nvrtc import Compiled
from kernelgen.targets.gpu.launch.statement_count import work_of
from kernelgen.targets.gpu.launch.time_model import estimate
from kernelgen.tensor.dims import evaluate

ARCH = "sm_90"
STEP_LIMIT = 1_000_000
"""Instructions of a gang of blocks: some tens of seconds. A kernel with a longer serial loop is refused."""

COUNTED_STEPS = 200_000
"""The same for a sample that only counts."""

SAMPLE_THREADS = 8192
"""Threads of a sample of blocks: the interpreter runs as many as one vector."""

SAMPLE_WORK = 1 << 19
"""Statements of all threads of a sample, unless that are fewer blocks than the least: some seconds."""

LONGEST = 1 << 14
"""Statements of a thread of a sample; with more of them it would take minutes."""

SAMPLE_BLOCKS = 4
"""The least blocks of a sample: the first, the last, and two between."""

WHOLE_THREADS, WHOLE_WORK = 1 << 20, 1 << 25
"""A launch that later ones build on has to run as a whole; with more threads or statements of theirs it takes minutes."""


@dataclass(frozen=True, eq=False)
class InterpretedEntry:
    """A kernel body; see :class:`kernelgen.targets.base.Entry`. Compiled by the first call."""

    source: str
    nest: Nest
    arch: str = ARCH
    reports: list[Report] = field(default_factory=list[Report], repr=False)
    _counted: dict[tuple[int, ...], tuple[Report, ...]] = field(
        default_factory=dict[tuple[int, ...], "tuple[Report, ...]"], repr=False
    )

    def __call__(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> None:
        """Runs all launches in order.

        Raises CodegenError with the findings of the first launch that is not clean, and UnsupportedError for one that
        takes more steps than the interpreter is for.
        """
        self._run_all(arrays, self._sizes(symbols), {})

    def sample(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> Sample:
        """Runs some blocks of each launch that no later one builds on, and all blocks of the others.

        Raises UnsupportedError("too-large") where one of those others has too many threads, and "budget" where a thread
        does too much; else what a call raises.
        """
        sizes, chosen = self._sizes(symbols), dict[str, int]()
        program = [launch for launch in launches(self.nest) if extent(launch.blocks, sizes)]
        for place, launch in enumerate(program):
            blocks, work = extent(launch.blocks, sizes), max(self._work(launch, sizes), 1)
            if work > LONGEST:
                raise UnsupportedError("budget", f"a thread of kernel {launch.kernel!r} runs {work} statements")
            if not self._is_followed(launch, program[place + 1 :]):
                chosen[launch.kernel] = self._sample_size(launch, sizes)
            elif (threads := blocks * launch.threads[0] * launch.threads[1]) > min(WHOLE_THREADS, WHOLE_WORK // work):
                raise UnsupportedError(
                    "too-large", f"kernel {launch.kernel!r} has {threads} threads, and must run whole"
                )
        self._run_all(arrays, sizes, chosen)
        ran, total = (
            (sum(counts) for counts in zip(*map(_blocks, self.reports), strict=True)) if self.reports else (0, 0)
        )
        return Sample(self._final(arrays), ran, total)

    def estimate(self, symbols: tuple[int, ...] = (), machine: str = "H200") -> Estimate:
        """How long the kernel would take on a device of :data:`kernelgen.machines.gpu.timed.MACHINES`, for known
        sizes.

        A sample of each launch's blocks runs on zeros, so that what depends on data is not as in a real run.
        Raises UnsupportedError for what the interpreter does not run in time.
        """
        sizes, launched = self._sizes(symbols), {launch.kernel: launch for launch in launches(self.nest)}
        if symbols not in self._counted:
            self._counted[symbols] = tuple(self._count(launch, sizes) for launch in launched.values())
        used = self.compiled.resources
        return Estimate(
            machine,
            tuple(
                estimate(
                    report,
                    used[report.kernel],
                    launched[report.kernel].dynamic_shared(sizes),
                    [self._bytes(place, sizes) for place in launched[report.kernel].buffers],
                    MACHINES[machine],
                )
                for report in self._counted[symbols]
                if report.blocks
            ),
        )

    @cached_property
    def compiled(self) -> Compiled:
        """The products of NVRTC. Raises BackendUnavailable without it."""
        return cached_cubin(self.source, self.nest.name, self.arch)[0]

    @cached_property
    def _module(self) -> Any:
        return parse(self.compiled.ptx)

    def _sizes(self, symbols: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.nest.symbols, symbols, strict=True))

    def _is_followed(self, launch: Launch, later: Sequence[Launch]) -> bool:
        """Whether a later launch may read or write what this one writes."""
        own = {place for place in launch.buffers if self.nest.buffers[place].space is not Space.INPUT}
        return any(own & set(other.buffers) for other in later)

    def _sample_size(self, launch: Launch, sizes: Mapping[str, int]) -> int:
        threads = launch.threads[0] * launch.threads[1]
        return max(SAMPLE_BLOCKS, min(SAMPLE_THREADS, SAMPLE_WORK // max(self._work(launch, sizes), 1)) // threads)

    def _work(self, launch: Launch, sizes: Mapping[str, int]) -> int:
        """The statements of a thread of the launch."""
        grids = (part for part in self.nest.body.statements if isinstance(part, Grid))
        return sum(work_of(grid, sizes) for grid in grids if grid.name == launch.kernel)

    def _run_all(self, arrays: tuple[Any, ...], sizes: dict[str, int], chosen: Mapping[str, int]) -> None:
        """Runs the launches, of those in ``chosen`` so many blocks."""
        buffers = [self._flat(array) for array in arrays]
        self.reports.clear()
        for launch in launches(self.nest):
            if not extent(launch.blocks, sizes):
                continue
            self.reports.append(self._run(launch, buffers, sizes, chosen.get(launch.kernel)))
            if self.reports[-1].kinds() == frozenset({"endless-loop"}):
                raise UnsupportedError(
                    "budget", f"kernel {launch.kernel!r} takes more than {STEP_LIMIT} steps of a thread"
                )
            if not self.reports[-1].clean:
                raise CodegenError(self._complaint(self.reports[-1]), self.source)
        for array, buffer, declared in zip(arrays, buffers, self.nest.buffers, strict=True):
            if declared.space is not Space.INPUT:
                np.copyto(array, buffer.view(array.dtype).reshape(array.shape))

    def _run(self, launch: Launch, buffers: list[np.ndarray], sizes: dict[str, int], blocks: int | None) -> Report:
        arguments = [*(buffers[k] for k in launch.buffers), *(np.int64(sizes[name]) for name in self.nest.symbols)]
        return run(
            self._module,
            extent(launch.blocks, sizes),
            launch.threads,
            arguments,
            kernel=launch.kernel,
            dynamic_shared=launch.dynamic_shared(sizes),
            blocks=blocks,
            step_limit=STEP_LIMIT,
        )

    def _count(self, launch: Launch, sizes: dict[str, int]) -> Report:
        """A sample of the launch's blocks on zeros, for its counts."""
        blanks = [Blank(self._bytes(place, sizes)) for place in launch.buffers]
        numbers = [np.int64(sizes[name]) for name in self.nest.symbols]
        report = run(
            self._module,
            extent(launch.blocks, sizes),
            launch.threads,
            [*blanks, *numbers],
            kernel=launch.kernel,
            dynamic_shared=launch.dynamic_shared(sizes),
            blocks=self._sample_size(launch, sizes),
            step_limit=COUNTED_STEPS,
        )
        if not report.completed:
            raise UnsupportedError(
                "budget", f"a sample of {launch.kernel!r} does not come to its end: {report.kinds()}"
            )
        return report

    def _bytes(self, place: int, sizes: dict[str, int]) -> int:
        buffer = self.nest.buffers[place]
        return prod(evaluate(dim, sizes) for dim in buffer.shape) * buffer.dtype.itemsize

    def _final(self, arrays: Sequence[Any]) -> tuple[np.ndarray | None, ...]:
        """For each buffer which elements have their final value: what the sampled launch that writes last has stored.

        An earlier launch ran as a whole, but nobody knows whether a block that did not run overwrites what it wrote.
        """
        places = {launch.kernel: launch.buffers for launch in launches(self.nest)}
        stored = {part.name: written(part) for part in self.nest.body.statements if isinstance(part, Grid)}
        found: list[np.ndarray | None] = [None] * len(arrays)
        for report in self.reports:
            for place, by_byte in zip(places[report.kernel], report.written, strict=True):
                if self.nest.buffers[place].name in stored[report.kernel]:
                    found[place] = _by_element(by_byte, arrays[place].dtype.itemsize) if report.sampled else None
        return tuple(found)

    def _flat(self, array: Any) -> np.ndarray:
        """A copy of an argument as plain bytes: arguments may overlap, the buffers of a launch may not."""
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()

    def _complaint(self, report: Report) -> str:
        """Kernel, line of the source and its text for each finding."""
        lines = self.source.splitlines()
        texts: list[str] = []
        for finding in report.findings:
            quoted = lines[finding.source_line - 1].strip() if 0 < finding.source_line <= len(lines) else ""
            texts.append(f"kernel {report.kernel!r}: {finding}: {quoted}")
        return "\n".join(texts) or f"kernel {report.kernel!r} did not come to its end"


def _by_element(by_byte: np.ndarray, size: int) -> np.ndarray:
    """Whether all bytes of each element are set; elements have 1, 2, 4 or 8 bytes, which numpy compares at once."""
    return by_byte.view(f"u{size}") == int.from_bytes(b"\x01" * size, "little")


def _blocks(report: Report) -> tuple[int, int]:
    """How many blocks ran, and how many there are."""
    return len(report.blocks), report.grid[0] * report.grid[1] * report.grid[2]
