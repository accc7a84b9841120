"""The GPU target: a nest as CUDA C, compiled by NVRTC when the kernel is called for the first time.

``gpu:hip`` and ``gpu:opencl`` print the same kernels in other dialects, with what their devices can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelgen.errors import BackendUnavailable
from kernelgen.nest.nodes import Nest
from kernelgen.targets.base import Entry, Target
from kernelgen.targets.gpu.cuda import CUDA
from kernelgen.targets.gpu.dialect import Dialect
from kernelgen.targets.gpu.entry import GpuEntry
from kernelgen.targets.gpu.hip import HIP
from kernelgen.targets.gpu.opencl import OPENCL
from kernelgen.targets.gpu.opencl_entry import OpenclEntry
from kernelgen.targets.gpu.printer import print_program
from kernelgen.targets.gpu.text_entry import TextEntry

DIALECTS: Mapping[str, tuple[Dialect, Callable[[str, Nest], Entry]]] = {
    "cuda": (CUDA, GpuEntry),
    "hip": (HIP, TextEntry),
    "opencl": (OPENCL, OpenclEntry),
}
"""The languages by name, each with what runs a program."""


def named(dialect: str) -> Target:
    """The target that prints in a dialect. Raises BackendUnavailable with the known names."""
    if dialect not in DIALECTS:
        raise BackendUnavailable(f"no dialect {dialect!r} for devices; known: {', '.join(DIALECTS)}")
    language, load = DIALECTS[dialect]
    name = "gpu" if language is CUDA else f"gpu:{dialect}"
    return Target(name, lambda nest: print_program(nest, language), load, machine=name, variant=named)


def emit(nest: Nest) -> str:
    """CUDA C of all launches."""
    return print_program(nest, CUDA)


TARGET = named("cuda")
