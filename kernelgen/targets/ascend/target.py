"""The Ascend target: a nest as AscendC, read back and simulated when the kernel is called.

``ascend`` is an A2 (910B); ``ascend:910A`` names another machine, ``ascend:FILE.ini`` the one of a platform_config file.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.printer import print_kernel
from kernelgen.errors import BackendUnavailable
from kernelgen.machines.ascend.description import Machine
from kernelgen.machines.ascend.machines import ASCEND_910B, find_machine
from kernelgen.machines.ascend.platform_config import read_platform
from kernelgen.nest.nodes import Nest
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.targets.ascend.lower.assemble import assemble
from kernelgen.targets.ascend.package.kernel_files import kernel_files
from kernelgen.targets.ascend.proof.instruction_claims import check_claims
from kernelgen.targets.base import Entry, Target


def target_for(machine: Machine) -> Target:
    """The target that makes kernels for a machine; it refuses with UnsupportedError what that has no instructions for."""

    def emit(nest: Nest) -> str:
        return print_kernel(assemble(nest, machine))

    def load(source: str, nest: Nest) -> Entry:
        return SimulatedEntry(source, nest, machine)

    def files(source: str, nest: Nest) -> Mapping[str, str]:
        return kernel_files(source, nest, machine)

    def claims(source: str) -> Mapping[str, int]:
        return check_claims(source, machine)

    return Target("ascend", emit, load, machine=machine, variant=named, files=files, claims=claims)


def named(machine: str) -> Target:
    """The target for a machine by name (910b is 910B), or by the path of its ``.ini`` file. Raises BackendUnavailable."""
    try:
        return target_for(read_platform(machine) if machine.endswith(".ini") else find_machine(machine.upper()))
    except AscendError as error:
        raise BackendUnavailable(str(error)) from error


TARGET = target_for(ASCEND_910B)
