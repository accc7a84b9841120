"""The result of a launch, as data and as text."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelgen.simulators.common.verdict import Verdict
from kernelgen.simulators.ptx.state.counters import Counts
from kernelgen.simulators.ptx.state.findings import Finding
from kernelgen.simulators.ptx.state.lanes import Extent


@dataclass(frozen=True, kw_only=True)
class Report(Verdict[Finding]):
    """What a launch did and what is wrong with it; ``blocks`` lists the blocks that ran, in order.

    ``written`` has a truth for each byte of each array among the arguments (not of blanks): whether a thread stored
    there, other than by an atomic operation.
    """

    kernel: str
    grid: Extent
    block: Extent
    blocks: tuple[int, ...]
    counts: Counts
    written: tuple[np.ndarray, ...] = field(default=(), repr=False, compare=False)

    @property
    def sampled(self) -> bool:
        """Whether only some of the blocks ran."""
        return len(self.blocks) < self.grid[0] * self.grid[1] * self.grid[2]

    def __str__(self) -> str:
        total = self.grid[0] * self.grid[1] * self.grid[2]
        lines = [
            f"{self.kernel}: grid {self.grid}, block {self.block}, {len(self.blocks)} of {total} blocks ran",
            *(f"  {finding}" for finding in self.findings),
            "  instructions of warps: " + ", ".join(f"{name} {n}" for name, n in self.counts.instructions.items()),
            *(f"  {kind}: {_traffic_text(self, kind)}" for kind in self.counts.traffic),
            f"  barriers: {self.counts.barriers}",
        ]
        if self.counts.approximate:
            lines.append("  approximate: " + ", ".join(self.counts.approximate))
        return "\n".join(lines)


def _traffic_text(report: Report, kind: str) -> str:
    traffic = report.counts.traffic[kind]
    start = f"{traffic.requests} requests, {traffic.bytes} bytes"
    if kind.startswith("shared"):
        return f"{start}, {traffic.cycles} cycles, {traffic.conflicts} bank conflicts"
    return f"{start}, {traffic.sectors} sectors, {traffic.sectors_per_needed:.2f} per 32 bytes"
