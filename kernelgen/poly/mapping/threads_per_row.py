"""How many threads share a row: the time of each candidate by counts alone, and the least of them.

A thread takes ``e = length / width`` elements of a row and meets the others for every reduction. In cycles, for a device of
132 multiprocessors with 2048 threads each:

    instructions of a thread   30 + 10 e + reductions (2 log2(lanes) + 10 + warps)
    issue                      rows x warps x instructions / (132 x 4)
    latency                    rounds of resident blocks x (ceil(e / 16) x 480 + 2.5 instructions + 40 reductions)

Their sum decides: neither hides the other wholly. It is the model of :mod:`kernelgen.targets.gpu.launch.time_model` with
assumed counts
in place of counted ones, so that nothing has to be compiled. Rows whose elements stay in registers are wanted, since others
are read twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.machines.gpu.device import HOPPER, WARP, GpuMachine

WIDE = 4
"""Neighbours that a thread takes at once."""

HELD = 256
"""Bytes of its elements that a thread keeps in registers."""

MOST_EACH = 32
"""Elements of a thread: the turns that are unrolled."""

FIXED, EACH, COMBINE = 30, 10, 10
"""Instructions of a thread: beside its elements, for each of them, and where partial results of warps are put together."""
IN_FLIGHT, STEP, BARRIER = 4 * WIDE, 2.5, 40.0
"""Elements that a thread has asked for at once; cycles that an instruction of one warp takes, and a barrier."""
MANY = 1 << 16
"""What an unknown number of rows is taken for."""


@dataclass(frozen=True)
class Rows:
    """Rows that groups of threads share: how many (None: unknown), how long, how often the threads of a row meet.

    ``held`` are the bytes of an element that stay with its thread from one loop to the next.
    """

    count: int | None
    length: int
    reductions: int
    held: int
    device: GpuMachine = HOPPER

    def elements(self, width: int) -> int:
        """Of a row, for each thread."""
        return -(-self.length // width)

    def is_held(self, width: int) -> bool:
        """Whether what stays with the threads fits their registers."""
        return not self.held or self.elements(width) <= min(HELD // self.held, MOST_EACH)

    def instructions(self, width: int) -> float:
        """Of a thread."""
        warps, lanes = -(-width // WARP), min(width, WARP)
        meeting = 2.0 * (lanes.bit_length() - 1) + (COMBINE + warps if warps > 1 else 0)
        return FIXED + EACH * self.elements(width) + self.reductions * meeting

    def cycles(self, width: int) -> float:
        """The estimate: what the device issues, and what a warp waits for."""
        count = MANY if self.count is None else self.count
        warps = width / WARP
        issue = count * warps * self.instructions(width) / (self.device.processors * self.device.issues)
        rounds = -(-count * width // (self.device.processors * self.device.resident))
        waits = -(-self.elements(width) // IN_FLIGHT) * self.device.latency + STEP * self.instructions(width)
        waits += BARRIER * self.reductions if warps > 1 else 0
        return issue + rounds * waits


def width_of(rows: Rows, widths: Sequence[int]) -> tuple[int, str]:
    """The fewest cycles among the widths, of those that hold their elements if one does, and the reason in words."""
    held = [width for width in widths if rows.is_held(width)] or [max(widths)]
    best = min(held, key=lambda width: (rows.cycles(width), width))
    each = rows.instructions(best) / rows.elements(best)
    return best, f"{best} threads share {rows.length} iterations: {each:.0f} instructions for each, estimated"
