"""A launch without data: what the pipes do in which order, and how long that takes. Arguments have types and sizes only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelgen.ascendc.instructions import Kernel
from kernelgen.machines.ascend.description import Machine
from kernelgen.simulators.ascendc.launch import meets, run_blocks, seats_of, surroundings
from kernelgen.simulators.ascendc.order.event_log import Ledger
from kernelgen.simulators.ascendc.report import Report
from kernelgen.simulators.ascendc.state.findings import Findings
from kernelgen.simulators.ascendc.state.memory import Buffer

STEP_LIMIT = 200_000


@dataclass(frozen=True)
class Launch:
    """How a kernel is started: for each parameter its type and elements, blocks, and fields of the tiling struct.

    Of blocks that do not meet those in ``looked_at`` stand for all.
    """

    arguments: Mapping[str, tuple[np.dtype, int]]
    blocks: int
    tiling: Mapping[str, int]
    looked_at: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Outline:
    """The ledger of a launch, and its report: times and findings."""

    ledger: Ledger
    report: Report


def outline(kernel: Kernel, launch: Launch, machine: Machine, step_limit: int = STEP_LIMIT) -> Outline:
    """Runs a kernel without data: what data decides (elements that the scalar unit reads) counts as 0."""
    buffers = {
        name: Buffer(name, np.broadcast_to(np.zeros(1, dtype), (elements,)), output=False, writable=True)
        for name, (dtype, elements) in launch.arguments.items()
    }
    seats = seats_of(kernel, machine, launch.blocks)
    ledger, findings = Ledger(), Findings("")
    around = surroundings(kernel, findings, buffers, machine, seats, launch.tiling, step_limit, ledger)
    alone = not meets(kernel)
    chosen = [seat for seat in seats if seat.group in launch.looked_at] if alone else seats
    cores = run_blocks(around, chosen)
    slowest = max(cores, key=lambda core: core.times.end, default=None)
    gm_bytes = round(around.gm_bytes * len(seats) / len(chosen))
    report = Report(
        findings=findings.all(),
        completed=not around.broken and bool(cores),
        machine=machine.name,
        gigahertz=machine.gigahertz,
        pipeline_cycles=slowest.times.end if slowest else 0.0,
        bandwidth_cycles=gm_bytes / machine.rates.copy_all_cores,
        gm_bytes=gm_bytes,
        slowest=slowest.seat.index if slowest else 0,
        spans=tuple(span for core in cores for span in core.times.spans),
    )
    return Outline(ledger, report)
