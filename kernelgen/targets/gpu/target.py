"""The GPU target: a nest as CUDA C, compiled by NVRTC when the kernel is called for the first time."""

from __future__ import annotations

from kernelgen.nest.nodes import Nest
from kernelgen.targets.base import Entry, Target
from kernelgen.targets.gpu.dialect import CUDA
from kernelgen.targets.gpu.entry import GpuEntry
from kernelgen.targets.gpu.printer import print_program


def emit(nest: Nest) -> str:
    """CUDA C of all launches."""
    return print_program(nest, CUDA)


def load(source: str, nest: Nest) -> Entry:
    """The kernel on a device, else in the PTX interpreter; both need NVRTC when it is called."""
    return GpuEntry(source, nest)


TARGET = Target("gpu", emit, load, machine="gpu")
