"""The Ascend target: a nest as AscendC for vector cores, read back and simulated when the kernel is called."""

from __future__ import annotations

from kernelgen.nest.nodes import Nest
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.targets.ascend.lower.assemble import assemble
from kernelgen.targets.ascend.machines import ASCEND_910B
from kernelgen.targets.ascend.printer import print_kernel
from kernelgen.targets.base import Entry, Target


def emit(nest: Nest) -> str:
    """AscendC for the A2's vector cores. Raises UnsupportedError for what they have no instructions for."""
    return print_kernel(assemble(nest, ASCEND_910B))


def load(source: str, nest: Nest) -> Entry:
    """The kernel in the simulator."""
    return SimulatedEntry(source, nest)


TARGET = Target("ascend", emit, load, machine="ascend")
