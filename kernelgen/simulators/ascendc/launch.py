"""Runs a kernel's text: its blocks on the cores of a machine, GM for its parameters, the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.instructions import AIC_ONLY, MIX, SELECT, Call, For, If, Kernel, Statement
from kernelgen.ascendc.pipes import named_pipe
from kernelgen.ascendc.reader import read_kernel
from kernelgen.errors import ArgumentError
from kernelgen.machines.ascend.description import Machine
from kernelgen.simulators.ascendc.core.core import Core
from kernelgen.simulators.ascendc.core.decode import decode
from kernelgen.simulators.ascendc.core.launch_state import Surroundings
from kernelgen.simulators.ascendc.order.core_flags import Meetings, Seat
from kernelgen.simulators.ascendc.order.event_log import Ledger
from kernelgen.simulators.ascendc.order.global_memory import Sharing
from kernelgen.simulators.ascendc.report import Report
from kernelgen.simulators.ascendc.state.findings import Findings
from kernelgen.simulators.ascendc.state.memory import Buffer
from kernelgen.simulators.ascendc.time.instruction_cost import core_bandwidth

STEP_LIMIT = 1_000_000
DONE = object()


def simulate(
    text: str,
    arguments: Mapping[str, np.ndarray],
    *,
    machine: Machine,
    blocks: int,
    outputs: Collection[str],
    updated: Collection[str] = (),
    tiling: Mapping[str, int] | None = None,
    step_limit: int = STEP_LIMIT,
    only: Collection[int] | None = None,
) -> Report:
    """Runs the AscendC text of a kernel and checks it on the way; of a kernel whose cores never meet, ``only`` some blocks.

    ``arguments`` are the arrays of the kernel's parameters by name; those named in ``outputs`` begin poisoned and are
    filled, those in ``updated`` keep their values and may be written. ``tiling`` gives the fields of the tiling struct.
    Faults of the kernel are findings of the report; outputs mean something only where it is clean. Raises AscendError for
    text outside of the subset, ArgumentError for arguments that do not fit.
    """
    kernel = read_kernel(text)
    _check_arguments(kernel, arguments, outputs, updated, tiling or {})
    buffers = {
        name: Buffer(name, array, output=name in outputs, writable=name in outputs or name in updated)
        for name, array in arguments.items()
    }
    seats = seats_of(kernel, machine, blocks)
    around = surroundings(kernel, Findings(text), buffers, machine, seats, tiling or {}, step_limit)
    _check_frame(kernel, list(_calls(kernel.body)), around.findings)
    cores = run_blocks(around, [seat for seat in seats if only is None or seat.group in only])
    return _report(around, cores, outputs, only is not None)


def surroundings(
    kernel: Kernel,
    findings: Findings,
    buffers: Mapping[str, Buffer],
    machine: Machine,
    seats: Sequence[Seat],
    tiling: Mapping[str, int],
    step_limit: int,
    ledger: Ledger | None = None,
) -> Surroundings:
    """What the cores of a launch share."""
    return Surroundings(
        kernel=kernel,
        machine=machine,
        fields=dict(tiling),
        buffers=buffers,
        cores=len(seats),
        bandwidth=core_bandwidth(machine, min(len(seats), machine.cores)),
        selects=any(call.operation == SELECT for call in _calls(kernel.body)),
        step_limit=step_limit,
        findings=findings,
        meetings=Meetings(seats),
        sharing=Sharing(),
        body=decode(kernel.body),
        ledger=ledger,
    )


def run_blocks(around: Surroundings, seats: Sequence[Seat]) -> list[Core]:
    """Runs the blocks: together where they meet, else one after the other."""
    kernel, machine = around.kernel, around.machine
    units = machine.cube_cores if kernel.kind in (AIC_ONLY, MIX) else machine.cores
    if not meets(kernel):
        return _run_in_turn(around, seats, units)
    blocks = 1 + max(seat.group for seat in seats)
    if blocks > units:
        around.findings.add("deadlock", 0, "launch", f"{blocks} blocks meet, {machine.name} runs {units} at once")
        return []
    return _run_together(around, seats)


def meets(kernel: Kernel) -> bool:
    """Whether the cores of a kernel wait for each other."""
    return any(call.operation.startswith("CrossCore") for call in _calls(kernel.body))


def _check_arguments(
    kernel: Kernel,
    arguments: Mapping[str, np.ndarray],
    outputs: Collection[str],
    updated: Collection[str],
    tiling: Mapping[str, int],
) -> None:
    if set(arguments) != set(kernel.parameters):
        raise ArgumentError(f"{kernel.name} takes {', '.join(kernel.parameters)}; given: {', '.join(arguments)}")
    unknown = sorted({*outputs, *updated} - set(arguments))
    if unknown:
        raise ArgumentError(f"outputs {', '.join(unknown)} are no parameters of {kernel.name}")
    strided = [name for name, array in arguments.items() if not array.flags.c_contiguous]
    if strided:
        raise ArgumentError(f"{', '.join(strided)}: arrays must be contiguous")
    fields = kernel.tiling.fields if kernel.tiling is not None else ()
    if set(tiling) != set(fields):
        raise ArgumentError(f"the tiling struct has {', '.join(fields) or 'no fields'}; given: {', '.join(tiling)}")


def seats_of(kernel: Kernel, machine: Machine, blocks: int) -> list[Seat]:
    """The cores of a launch: a block each, or a cube core and its two vector cores.

    Raises ArgumentError for less than one block, AscendError for a machine without split cores where the kernel needs
    them.
    """
    if blocks < 1:
        raise ArgumentError(f"{blocks} blocks")
    if kernel.kind != MIX:
        return [Seat(block, block, kernel.kind == AIC_ONLY) for block in range(blocks)]
    if not machine.split_cores:
        raise AscendError(f"{machine.name} has no split cores for a kernel of type {MIX}")
    return [Seat(3 * group + at, group, at == 0) for group in range(blocks) for at in range(3)]


def _calls(statements: Sequence[Statement]) -> Iterator[Call]:
    for statement in statements:
        match statement:
            case Call():
                yield statement
            case For(body=body):
                yield from _calls(body)
            case If(then=then, otherwise=otherwise):
                yield from _calls(then)
                yield from _calls(otherwise)
            case _:
                pass


def _check_frame(kernel: Kernel, calls: Sequence[Call], findings: Findings) -> None:
    """A kernel without TPipe begins with InitSocState and ends with a barrier for all pipes."""
    if not calls or calls[0].operation != "InitSocState":
        findings.add("bad-frame", calls[0].line if calls else 0, "kernel", "the first call is not InitSocState")
    last = kernel.body[-1] if kernel.body else None
    if not isinstance(last, Call) or last.operation != "PipeBarrier" or named_pipe(last) != "ALL":
        findings.add("bad-frame", last.line if last else 0, "kernel", "the last call is not PipeBarrier<PIPE_ALL>")


def _core(around: Surroundings, seat: Seat, start: float) -> Core:
    kernel, sub = around.kernel, (seat.index % 3) - 1
    mixed = kernel.kind == MIX
    index = 2 * seat.group + sub if mixed and not seat.cube else seat.group
    values = {
        "GetBlockIdx": index,
        "GetBlockNum": around.cores // 3 if mixed else around.cores,
        "GetSubBlockIdx": max(sub, 0) if mixed else 0,
        "ASCEND_IS_AIC": int(seat.cube),
        "ASCEND_IS_AIV": int(not seat.cube),
        "true": 1,
        "false": 0,
    }
    kind = f" {'cube' if seat.cube else f'vector {sub}'}" if mixed else ""
    return Core(around, seat, f"block {seat.group}{kind}", values, start)


def _run_in_turn(around: Surroundings, seats: Sequence[Seat], units: int) -> list[Core]:
    """One block after the other; where there are more than cores, a core takes the next when it is done."""
    free = [0.0] * units
    cores = list[Core]()
    for seat in seats:
        core = _core(around, seat, free[seat.index % units])
        for _ in core.run():
            core.stuck()
            break
        core.leave()
        free[seat.index % units] = core.times.end
        cores.append(core)
    return cores


def _run_together(around: Surroundings, seats: Sequence[Seat]) -> list[Core]:
    """All blocks, each as far as it can go, round after round, until none moves."""
    cores = [_core(around, seat, 0.0) for seat in seats]
    waiting = {core: core.run() for core in cores}
    moved = True
    while waiting and moved:
        moved = False
        for core in list(waiting):
            step = core.progress
            done = next(waiting[core], DONE) is DONE
            if done:
                del waiting[core]
            moved = moved or done or core.progress != step
    for core in waiting:
        core.stuck()
    for core in cores:
        if core not in waiting:
            core.part()
    return cores


def _report(around: Surroundings, cores: Sequence[Core], outputs: Collection[str], sampled: bool) -> Report:
    where = {core.seat.index: core.where for core in cores}
    around.sharing.check(around.findings, where)
    for name in outputs:
        buffer = around.buffers[name]
        missing = 0 if sampled else int(buffer.size - buffer.written[: buffer.size].sum())
        if missing and not around.broken:
            around.findings.add("unwritten-output", 0, "kernel", f"{missing} of {buffer.size} bytes of {name}")
    for buffer in around.buffers.values():
        if buffer.writable:
            buffer.give_back()
    gm_bytes = around.gm_bytes + sum(buffer.fetched_bytes for buffer in around.buffers.values())
    slowest = max(cores, key=lambda core: core.times.end, default=None)
    return Report(
        findings=around.findings.all(),
        completed=not around.broken and bool(cores),
        machine=around.machine.name,
        gigahertz=around.machine.gigahertz,
        pipeline_cycles=slowest.times.end if slowest else 0.0,
        bandwidth_cycles=gm_bytes / around.machine.rates.copy_all_cores,
        gm_bytes=gm_bytes,
        slowest=slowest.seat.index if slowest else 0,
        spans=tuple(span for core in cores for span in core.times.spans),
        written={name: around.buffers[name].written[: around.buffers[name].size] for name in outputs}
        if sampled
        else None,
    )
