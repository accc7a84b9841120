"""An OpenCL C program on the first device that pyopencl finds: numpy arrays in and out, copied there and back."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelgen.errors import BackendUnavailable, CodegenError
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import Nest, Space
from kernelgen.system.cached_property import cached_property
from kernelgen.targets.gpu.dialects.program import launches

INSTALL = "pip install pyopencl pocl-binary-distribution (PoCL runs on the processor), or a vendor's driver"


@dataclass(frozen=True, eq=False)
class OpenclEntry:
    """A kernel body; see :class:`kernelgen.targets.base.Entry`. Built by the first call."""

    source: str
    nest: Nest

    def __call__(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> None:
        """Runs all launches in order, and waits."""
        cl, queue = self._opencl, self._queue
        sizes = dict(zip(self.nest.symbols, symbols, strict=True))
        places = [_on_device(cl, queue, array) for array in arrays]
        for launch in launches(self.nest):
            blocks = extent(launch.blocks, sizes)
            if not blocks:
                continue
            arguments: list[Any] = [places[k] for k in launch.buffers]
            arguments += [np.int64(value) for value in symbols]
            if launch.most_dynamic_shared:
                arguments.append(cl.LocalMemory(launch.dynamic_shared(sizes)))
            x, y, _ = launch.threads
            getattr(self._program, launch.kernel)(queue, (blocks * x, y), (x, y), *arguments)
        for array, place, declared in zip(arrays, places, self.nest.buffers, strict=True):
            if declared.space is not Space.INPUT and array.size:
                flat = np.empty(array.nbytes, np.uint8)
                cl.enqueue_copy(queue, flat, place)
                np.copyto(array, flat.view(array.dtype).reshape(array.shape))
        queue.finish()

    @cached_property
    def _opencl(self) -> Any:
        try:
            return importlib.import_module("pyopencl")
        except ImportError as error:
            raise BackendUnavailable(f"pyopencl is not installed ({error}); {INSTALL}") from error

    @cached_property
    def _queue(self) -> Any:
        """A queue of the first device, which runs its commands in order."""
        cl = self._opencl
        try:
            devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
        except cl.Error as error:
            raise BackendUnavailable(f"pyopencl finds no platform ({error}); {INSTALL}") from error
        if not devices:
            raise BackendUnavailable(f"pyopencl finds no device; {INSTALL}")
        return cl.CommandQueue(cl.Context(devices[:1]))

    @cached_property
    def _program(self) -> Any:
        cl = self._opencl
        try:
            return cl.Program(self._queue.context, self.source).build(options=["-cl-std=CL1.2", "-w"])
        except cl.RuntimeError as error:
            raise CodegenError(f"kernel {self.nest.name!r}: OpenCL rejects it: {error}", self.source) from error


def _on_device(cl: Any, queue: Any, array: Any) -> Any:
    """A copy of an array in the device's memory; an empty one takes a byte."""
    flags = cl.mem_flags.READ_WRITE
    if not array.size:
        return cl.Buffer(queue.context, flags, 1)
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return cl.Buffer(queue.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=flat)
