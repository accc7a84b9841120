"""A loaded GPU kernel: on a CUDA device where there is one, else in the PTX interpreter."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.native.signature import Signature
from kernelgen.targets.gpu.dialects.program import launches
from kernelgen.targets.gpu.launch.device import NoDevice, find_device
from kernelgen.targets.gpu.launch.interpret import InterpretedEntry
from kernelgen.targets.gpu.launch.launcher import DeviceKernel


@dataclass(frozen=True, eq=False)
class GpuEntry(InterpretedEntry):
    """Calling the entry itself interprets, on numpy arrays; :meth:`on_device` gives the call on a device."""

    @property
    def interpreter(self) -> InterpretedEntry:
        """The same kernel, interpreted also where there is a device."""
        return InterpretedEntry(self.source, self.nest, self.arch)

    def on_device(self, signature: Signature) -> DeviceKernel | None:
        """The kernel on the current device; None where there is none."""
        device = find_device()
        return (
            None
            if isinstance(device, NoDevice)
            else DeviceKernel(signature, self.nest, self.source, launches(self.nest), device)
        )
