"""How long a kernel would take on a device: an estimate from what the interpreter counts and the compiler reports.

A launch takes the time of its narrowest resource (the roofline of Williams, Waterman and Patterson 2009), or as long as
its warps wait for memory where too few of them are resident to hide it (Little's law):

    memory    distinct bytes / attainable bandwidth; bytes that are read again are taken to hit the L2
    l2        32 bytes x sectors / bandwidth of the L2; a small buffer is read once by each multiprocessor
    issue     machine instructions of warps / 4 a cycle; of each class by its units; shared memory by its cycles with conflicts
    latency   of a warp: requests / those it has under way x latency, instructions, barriers; x rounds of resident blocks

Counts are those of a sample of blocks, times the number of blocks. A block stays on its multiprocessor, so the fullest one
decides, but for the memory. What no count shows is left out: clocks under load, atomics that collide, rows of memory that
open and close.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.machines.gpu.device import WARP
from kernelgen.machines.gpu.timed import TimedMachine
from kernelgen.simulators.ptx import Report
from kernelgen.simulators.ptx.state.counters import SECTOR
from kernelgen.targets.entries import LaunchEstimate
from kernelgen.targets.gpu.launch.nvrtc import Resources

UNDER_WAY = 4
"""Requests of one warp on their way at a time: loads that do not wait for each other; an assumption."""

BARRIER_CYCLES = 40.0
WARP_CYCLES = 2.5
"""From one instruction of a warp to its next: 4 cycles where it needs the result, else 1; an assumption.

Products of matrices do not wait for each other.
"""

FIRST_LEVEL = 64 << 10
"""Bytes of a buffer that stay in a multiprocessor's own cache: part of it, for there are other buffers."""

REGISTER_GRANULE = 256  # registers are given to warps in such pieces
RESERVED_SHARED = 1024  # of each block, by the system


def estimate(
    report: Report, used: Resources, dynamic_shared: int, buffer_bytes: Sequence[int], machine: TimedMachine
) -> LaunchEstimate:
    """A launch of which ``report`` ran some blocks. ``buffer_bytes`` are the sizes of the arrays among its arguments."""
    total = report.grid[0] * report.grid[1] * report.grid[2]
    threads = report.block[0] * report.block[1] * report.block[2]
    warps = -(-threads // WARP)
    times = total / max(len(report.blocks), 1)
    shared = used.shared + dynamic_shared
    resident = resident_blocks(machine, warps, used.registers, shared)
    moved, sectors = _traffic(report, times, buffer_bytes, min(total, machine.device.processors))
    fullest = -(-total // machine.device.processors) / max(total, 1)
    limits = {
        "memory": moved / (machine.bandwidth * machine.attainable),
        "l2": sectors * SECTOR * fullest * machine.device.processors / machine.l2_bandwidth,
        **_units(report, times * fullest, machine),
        "latency": _latency(report, times, total, warps, resident, machine),
    }
    return LaunchEstimate(
        report.kernel, machine.name, total, threads, used.registers, shared, used.spill_stores + used.spill_loads,
        resident * warps * WARP / machine.device.resident, moved, sectors,
        round(times * _conflicts(report)), limits, machine.start,
    )  # fmt: skip


def _traffic(report: Report, times: float, buffer_bytes: Sequence[int], busy: int) -> tuple[int, int]:
    """Distinct bytes that leave or reach the memory, and sectors that leave or reach the L2."""
    moved, sectors = (
        0.0,
        times * sum(t.sectors for kind, t in report.counts.traffic.items() if kind.startswith("local")),
    )
    for (number, kind), found in report.counts.sectors.items():
        if number >= len(buffer_bytes):
            continue  # a thread's own memory, counted above, or a table of constants
        size, touched = buffer_bytes[number], times * found
        moved += min(touched * SECTOR, size)
        is_kept = kind == "load" and size <= FIRST_LEVEL
        sectors += min(touched, busy * size / SECTOR) if is_kept else touched
    return round(moved), round(sectors)


def resident_blocks(machine: TimedMachine, warps: int, registers: int, shared: int) -> int:
    """How many blocks of so many ``warps`` a multiprocessor of ``machine`` holds at a time, 1 at least, where each
    thread has ``registers`` and each block ``shared`` bytes of shared memory.
    """
    by_warp = -(-max(registers, 1) * WARP // REGISTER_GRANULE) * REGISTER_GRANULE
    room = (
        machine.blocks,
        machine.device.resident // WARP // warps,
        machine.device.registers // (by_warp * warps),
        machine.device.shared_bytes // (shared + RESERVED_SHARED) if shared else machine.blocks,
    )
    return max(min(room), 1)


def _units(report: Report, times: float, machine: TimedMachine) -> dict[str, float]:
    """Seconds of issue, of each kind of unit and of shared memory, on the multiprocessor with the most blocks.

    ``times`` is what the counts are multiplied by to be those of that multiprocessor.
    """
    cycle = times / machine.clock
    counts = report.counts.machine
    found = {"issue": sum(counts.values()) / machine.device.issues * cycle}
    for name, number in counts.items():
        if name in machine.lanes:
            found[name] = number * WARP / machine.lanes[name] * cycle
    found["matrix"] = counts.get("matrix", 0) * machine.matrix_cycles * cycle
    found["shared"] = sum(t.cycles for kind, t in report.counts.traffic.items() if kind.startswith("shared")) * cycle
    return found


def _latency(report: Report, times: float, total: int, warps: int, resident: int, machine: TimedMachine) -> float:
    """Seconds that a warp takes if no other one is in its way, for each round of resident blocks.

    Asynchronous copies start some tiles ahead, and nobody waits for them.
    """
    requests = sum(t.requests for kind, t in report.counts.traffic.items() if kind in ("global load", "local load"))
    requests = max(requests - report.counts.instructions.get("async", 0), 0)
    by_warp = times / max(total * warps, 1)
    waits = max(requests * by_warp / UNDER_WAY, min(requests, 1)) * machine.device.latency
    waits += sum(number for name, number in report.counts.machine.items() if name != "matrix") * by_warp * WARP_CYCLES
    waits += report.counts.barriers * times / max(total, 1) * BARRIER_CYCLES
    return -(-total // (machine.device.processors * resident)) * waits / machine.clock


def _conflicts(report: Report) -> int:
    return sum(t.conflicts for t in report.counts.traffic.values())
