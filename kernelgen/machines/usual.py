"""The usual machine of each kind by name."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.machines.ascend.description import Machine as AscendMachine
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.machines.cpu import CPU, CpuMachine
from kernelgen.machines.gpu.device import DEVICES, GpuMachine

Machine = CpuMachine | GpuMachine | AscendMachine
MACHINES: Mapping[str, Machine] = {"cpu": CPU, "ascend": ASCEND_910B, **DEVICES}
