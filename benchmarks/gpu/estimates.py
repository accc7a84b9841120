"""What the classes would take on a device: no measurement, but the model of the GPU target, where there is no device."""

from __future__ import annotations

from typing import Any

import kernelgen
from benchmarks.gpu.cases import GpuCase, size_in_bytes
from benchmarks.gpu.contestants import traced
from graphkernel import optimize
from graphkernel.errors import GraphKernelError
from graphkernel.handoff import to_desc
from graphkernel.ir.graph import Node
from kernelgen.errors import KernelgenError
from kernelgen.targets.gpu.machines import MACHINES

MACHINE = "H200"
Record = dict[str, Any]


def estimated(case: GpuCase, tiny: bool, machine: str = MACHINE) -> Record:
    """Estimated milliseconds of a class and of each of its launches, as a share of the attainable bandwidth too.

    Operators that no kernel computes are named and take no part.
    """
    operands = case.operands(tiny)
    graph = traced(case, operands)
    fused = optimize(graph, opt_level=2, target="gpu")
    rows = next(iter(operands.values()))[0][0]
    launches: list[Record] = []
    left_out: list[str] = []
    for node in fused.operators:
        found = _launches(node, rows, machine)
        if found is None:
            left_out.append(str(node.op.name))
        else:
            launches += found
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
        "launches": launches,
        "without_a_kernel": left_out,
    }


def guarded(case: GpuCase, tiny: bool) -> Record:
    """:func:`estimated`, or why there is no estimate."""
    try:
        return estimated(case, tiny)
    except (GraphKernelError, KernelgenError) as fault:
        return {"failed": f"{type(fault).__name__}: {fault}"}


def _launches(node: Node, rows: int, machine: str) -> list[Record] | None:
    if node.body is None:
        return None
    kernel = kernelgen.compile(to_desc(node, "gpu"), "gpu")
    found = kernel.estimate(machine, **dict.fromkeys(kernel.nest.symbols, rows))
    assert found is not None, "the target has launches"
    return [
        {
            "microseconds": round(launch.seconds * 1e6, 3),
            "bound": launch.bound,
            "occupancy": round(launch.occupancy, 3),
            "registers": launch.registers,
            "shared_bytes": launch.shared_bytes,
            "spill_bytes": launch.spill_bytes,
            "blocks": launch.blocks,
            "threads": launch.threads,
        }
        for launch in found.launches
    ]


def _size(type_: Any, rows: int) -> int:
    """Bytes of a value; a symbolic extent counts as ``rows``."""
    total = type_.dtype.itemsize
    for dim in type_.shape:
        total *= dim if isinstance(dim, int) else rows
    return total
