"""What the classes would take on a device: no measurement, but the model of the GPU target, where there is no device."""

from __future__ import annotations

import time
from typing import Any

import kernelgen
from benchmarks.gpu.cases import GpuCase, size_in_bytes
from benchmarks.gpu.contestants import traced
from graphkernel import optimize
from graphkernel.errors import GraphKernelError
from graphkernel.handoff import to_desc
from kernelgen.errors import KernelgenError
from kernelgen.kernel import Kernel
from kernelgen.machines.gpu.timed import MACHINES
from kernelgen.targets.entries import LaunchEstimate
from kernelgen.targets.gpu.launch.nvrtc import compile_cuda

MACHINE = "H100"
SHOWN = 4
Record = dict[str, Any]


def estimated(case: GpuCase, tiny: bool, machine: str = MACHINE) -> Record:
    """Estimated milliseconds of a class and of each of its launches, as a share of the attainable bandwidth too.

    Operators that no kernel computes are named and take no part. ``compile_ms`` is the processor time from the function to
    machine code for the device, with nothing in any cache.
    """
    operands = case.operands(tiny)
    rows = next(iter(operands.values()))[0][0]
    start = time.process_time()
    graph = traced(case, operands)
    nodes = optimize(graph, opt_level=2, target="gpu").operators
    kernels = [kernelgen.compile(to_desc(node, "gpu"), "gpu") for node in nodes if node.body is not None]
    for source, name in dict.fromkeys((kernel.source, kernel.nest.name) for kernel in kernels):
        compile_cuda(source, name)
    compiled = time.process_time() - start
    launches = [launch for kernel in kernels for launch in _launches(kernel, rows, machine)]
    left_out = [str(node.op.name) for node in nodes if node.body is None]
    device = MACHINES[machine]
    moved = sum(size_in_bytes(*one) for one in operands.values())
    moved += sum(_size(value.type, rows) for value in graph.outputs)
    limit = moved / (device.bandwidth * device.attainable)
    seconds = sum(launch["microseconds"] for launch in launches) / 1e6
    return {
        "bytes": moved,
        "limit_ms": limit * 1e3,
        "milliseconds": seconds * 1e3,
        "bandwidth_fraction": None if left_out or not seconds else limit / seconds,
        "compile_ms": compiled * 1e3,
        "launches": launches,
        "without_a_kernel": left_out,
    }


def guarded(case: GpuCase, tiny: bool) -> Record:
    """:func:`estimated`, or why there is no estimate."""
    try:
        return estimated(case, tiny)
    except (GraphKernelError, KernelgenError) as fault:
        return {"failed": f"{type(fault).__name__}: {fault}"}


def _launches(kernel: Kernel, rows: int, machine: str) -> list[Record]:
    found = kernel.estimate(machine, **dict.fromkeys(kernel.nest.symbols, rows))
    assert found is not None, "the target has launches"
    return [
        {
            "microseconds": round(launch.seconds * 1e6, 3),
            "bound": launch.bound,
            "limits_us": {name: round(limit * 1e6, 3) for name, limit in _narrowest(launch)},
            "occupancy": round(launch.occupancy, 3),
            "registers": launch.registers,
            "shared_bytes": launch.shared_bytes,
            "spill_bytes": launch.spill_bytes,
            "blocks": launch.blocks,
            "threads": launch.threads,
        }
        for launch in found.launches
    ]


def _narrowest(launch: LaunchEstimate) -> list[tuple[str, float]]:
    """The resources that take longest: what would be next, if the first were wider."""
    return sorted(launch.limits.items(), key=lambda entry: -entry[1])[:SHOWN]


def _size(type_: Any, rows: int) -> int:
    """Bytes of a value; a symbolic extent counts as ``rows``."""
    total = type_.dtype.itemsize
    for dim in type_.shape:
        total *= dim if isinstance(dim, int) else rows
    return total
