"""The GPU target: a nest as CUDA C, compiled by NVRTC when the kernel is called for the first time.

Kernels are sized for the device that is current for cupy, without one for an H100. ``gpu:sm_75`` names the devices of a
compute capability; ``gpu:hip`` and ``gpu:opencl`` print the same kernels in other dialects, with what their devices can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kernelgen.errors import BackendUnavailable
from kernelgen.machines.gpu.device import CAPABILITIES, DEVICES, GpuMachine
from kernelgen.nest.nodes import Nest
from kernelgen.targets.base import Entry, Target
from kernelgen.targets.gpu.dialects.cuda import CUDA, TURING
from kernelgen.targets.gpu.dialects.dialect import Dialect
from kernelgen.targets.gpu.dialects.hip import HIP
from kernelgen.targets.gpu.dialects.opencl import OPENCL
from kernelgen.targets.gpu.dialects.printer import print_program
from kernelgen.targets.gpu.launch.device import ARCH, NoDevice, find_device
from kernelgen.targets.gpu.launch.entry import GpuEntry
from kernelgen.targets.gpu.launch.opencl_entry import OpenclEntry
from kernelgen.targets.gpu.launch.text_entry import TextEntry

USUAL = 90
FIRST_WITH_LARGE_MATRICES = 80
"""The compute capability from which on one instruction multiplies matrices of 16 terms."""

DIALECTS: Mapping[str, tuple[Dialect, Callable[[str, Nest], Entry]]] = {
    "hip": (HIP, TextEntry),
    "opencl": (OPENCL, OpenclEntry),
}
"""Other languages by name, each with what runs a program."""


def named(name: str) -> Target:
    """The target for devices of a compute capability, or the one that prints in a dialect.

    Raises BackendUnavailable with the known names.
    """
    number = name.removeprefix(ARCH)
    if name.startswith(ARCH) and number.isdecimal() and int(number) in CAPABILITIES:
        return target_for(f"gpu:{name}", int(number), CAPABILITIES[int(number)])
    if name not in DIALECTS:
        known = ", ".join((*(f"{ARCH}{number}" for number in CAPABILITIES), *DIALECTS))
        raise BackendUnavailable(f"no device or dialect {name!r}; known: {known}")
    language, load = DIALECTS[name]
    return Target(
        f"gpu:{name}", lambda nest: print_program(nest, language), load, machine=DEVICES[f"gpu:{name}"], variant=named
    )


def target_for(name: str, number: int, device: GpuMachine) -> Target:
    """The target called ``name`` for a CUDA device of the compute capability ``number`` (times ten); ``device`` says
    what it is like.
    """
    language = CUDA if number >= FIRST_WITH_LARGE_MATRICES else TURING

    def load(source: str, nest: Nest) -> Entry:
        return GpuEntry(source, nest, f"{ARCH}{number}")

    return Target(name, lambda nest: print_program(nest, language), load, machine=device, variant=named)


def at_hand() -> Target:
    """The target for the device that is current for cupy; without one that of an H100."""
    found = find_device()
    if isinstance(found, NoDevice):
        return TARGET
    return target_for("gpu", int(found.arch.removeprefix(ARCH)), found.abilities)


def emit(nest: Nest) -> str:
    """CUDA C of all launches."""
    return print_program(nest, CUDA)


TARGET = replace(target_for("gpu", USUAL, CAPABILITIES[USUAL]), at_hand=at_hand)
