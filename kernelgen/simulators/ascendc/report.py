"""What a run showed: findings, times, bytes. The times are an estimate and never measured by us."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelgen.ascendc.types import PIPES
from kernelgen.simulators.ascendc.state.findings import Finding
from kernelgen.simulators.ascendc.time.pipe_clock import Span
from kernelgen.simulators.common.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Report(Verdict[Finding]):
    """The result of a run. ``cycles`` holds all cores and the shared bandwidth; ``pipe_cycles`` is of the slowest core.

    ``written`` has the bytes that were written of every output where only some blocks ran.
    """

    machine: str
    gigahertz: float
    pipeline_cycles: float
    bandwidth_cycles: float
    gm_bytes: int
    slowest: int
    spans: tuple[Span, ...]
    written: Mapping[str, np.ndarray] | None = None

    @property
    def cycles(self) -> float:
        """Estimated cycles: the slowest core, or all bytes over what the cores' memory gives together."""
        return max(self.pipeline_cycles, self.bandwidth_cycles)

    @property
    def microseconds(self) -> float:
        """Estimated time on the cores, without the launch."""
        return self.cycles / self.gigahertz / 1000

    def pipe_cycles(self) -> Mapping[str, float]:
        """How long each pipe of the slowest core works."""
        return {
            pipe: sum(span.stop - span.start for span in self.spans if span.core == self.slowest and span.pipe == pipe)
            for pipe in PIPES
        }

    @property
    def bound_by(self) -> str:
        """What the kernel's time is made of: the memory all cores share, the busiest pipe, or waiting for flags."""
        if self.bandwidth_cycles >= self.pipeline_cycles:
            return "GM bandwidth"
        pipe, busy = max(self.pipe_cycles().items(), key=lambda one: one[1])
        return pipe if busy >= self.pipeline_cycles / 2 else "waiting"

    def __str__(self) -> str:
        estimate = (
            f"{self.machine}: {self.cycles:.0f} cycles, {self.microseconds:.2f} us, bound by {self.bound_by} "
            "(estimate, never measured by us)"
        )
        found = [str(finding) for finding in self.findings] or ["nothing found"]
        return "\n".join([estimate, *found])
