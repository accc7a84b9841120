"""A kernel without a device: its launches in the PTX interpreter, whose findings are errors.

The interpreter runs every thread of every block and watches each access, so it is for small arrays: it shows that a kernel
is right, and counts what it does, but is no way to compute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kernelgen.errors import CodegenError, UnsupportedError
from kernelgen.nest.nodes import Nest, Space
from kernelgen.targets.gpu.cubins import cached_cubin
from kernelgen.targets.gpu.extents import extent
from kernelgen.targets.gpu.nvrtc import Compiled
from kernelgen.targets.gpu.program import Launch, launches
from kernelgen.targets.gpu.ptx import Report, parse, run

ARCH = "sm_90"
STEP_LIMIT = 1_000_000
"""Instructions of a gang of blocks: some tens of seconds. A kernel with a longer serial loop is refused."""


@dataclass(frozen=True, eq=False)
class InterpretedEntry:
    """A kernel body; see :class:`kernelgen.targets.base.Entry`. Compiled by the first call."""

    source: str
    nest: Nest
    arch: str = ARCH
    reports: list[Report] = field(default_factory=list[Report], repr=False)

    def __call__(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> None:
        """Runs all launches in order.

        Raises CodegenError with the findings of the first launch that is not clean, and UnsupportedError for one that
        takes more steps than the interpreter is for.
        """
        sizes = dict(zip(self.nest.symbols, symbols, strict=True))
        buffers = [self._flat(array) for array in arrays]
        self.reports.clear()
        for launch in launches(self.nest):
            if not extent(launch.blocks, sizes):
                continue
            self.reports.append(self._run(launch, buffers, sizes))
            if self.reports[-1].kinds() == frozenset({"endless-loop"}):
                raise UnsupportedError(
                    "budget", f"kernel {launch.kernel!r} takes more than {STEP_LIMIT} steps of a thread"
                )
            if not self.reports[-1].clean:
                raise CodegenError(self._complaint(self.reports[-1]), self.source)
        for array, buffer, declared in zip(arrays, buffers, self.nest.buffers, strict=True):
            if declared.space is not Space.INPUT:
                np.copyto(array, buffer.view(array.dtype).reshape(array.shape))

    @cached_property
    def compiled(self) -> Compiled:
        """The products of NVRTC. Raises BackendUnavailable without it."""
        return cached_cubin(self.source, self.nest.name, self.arch)[0]

    @cached_property
    def _module(self) -> Any:
        return parse(self.compiled.ptx)

    def _run(self, launch: Launch, buffers: list[np.ndarray], sizes: dict[str, int]) -> Report:
        arguments = [*(buffers[k] for k in launch.buffers), *(np.int64(sizes[name]) for name in self.nest.symbols)]
        return run(
            self._module,
            extent(launch.blocks, sizes),
            launch.threads,
            arguments,
            kernel=launch.kernel,
            dynamic_shared=launch.dynamic_shared,
            step_limit=STEP_LIMIT,
        )

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
