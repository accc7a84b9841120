"""What CUDA device there is, through cupy; and the functions of a cubin on it."""

from __future__ import annotations

import hashlib
import importlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kernelgen.machines.gpu.device import GpuMachine, capability
from kernelgen.targets.gpu.dialects.program import Launch

ARCH = "sm_"
INSTALL = 'pip install "graphkernel[gpu]"'

Function = Callable[..., None]
"""``function(grid, block, arguments, shared_mem=bytes)`` on cupy's current stream."""


@dataclass(frozen=True)
class Device:
    """The current CUDA device. ``arch`` is what kernels are compiled for, such as sm_90."""

    number: int
    name: str
    arch: str
    abilities: GpuMachine
    cupy: Any = field(repr=False, compare=False)


@dataclass(frozen=True)
class NoDevice:
    """Why there is none, and what to do about it."""

    reason: str


def find_device() -> Device | NoDevice:
    """The device that is current for cupy in this thread."""
    try:
        cupy: Any = importlib.import_module("cupy")
    except ImportError as error:
        return NoDevice(f"cupy is not installed ({error}); {INSTALL}")
    try:
        number = int(cupy.cuda.runtime.getDevice())
        properties: Mapping[str, Any] = cupy.cuda.runtime.getDeviceProperties(number)
        arch = f"{ARCH}{cupy.cuda.Device(number).compute_capability}"
    except RuntimeError as error:  # cupy's CUDARuntimeError is one: no driver, or no device
        return NoDevice(f"cupy finds no CUDA device: {error}")
    name = properties["name"]
    text = name.decode() if isinstance(name, bytes) else str(name)
    return Device(number, text, arch, _abilities(int(arch.removeprefix(ARCH)), properties), cupy)


def _abilities(number: int, properties: Mapping[str, Any]) -> GpuMachine:
    """What the device can do: its own sizes, and the instructions of its compute capability."""
    return replace(
        capability(number),
        processors=int(properties["multiProcessorCount"]),
        resident=int(properties["maxThreadsPerMultiProcessor"]),
        shared_bytes=int(properties["sharedMemPerBlockOptin"]),
    )


def load_functions(cupy: Any, cubin: bytes, launches: Sequence[Launch]) -> tuple[Function, ...]:
    """One function a launch, loaded onto the current device.

    cupy loads cubins from files and remembers them by path, so the file is named by its content. Kernels that need more
    shared memory than may be declared are allowed it here.
    """
    with tempfile.TemporaryDirectory(prefix="graphkernel-") as folder:
        path = Path(folder) / f"{hashlib.sha256(cubin).hexdigest()}.cubin"
        path.write_bytes(cubin)
        module = cupy.RawModule(path=str(path))
        return tuple(_function(module, launch) for launch in launches)


def _function(module: Any, launch: Launch) -> Function:
    function = module.get_function(launch.kernel)
    function.compile()  # loads the module while its file is there
    if launch.most_dynamic_shared:
        function.max_dynamic_shared_size_bytes = launch.most_dynamic_shared
    return function.kernel  # of the current device, which a RawKernel would look up in every call
