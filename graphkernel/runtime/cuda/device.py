"""The memory of a CUDA device for plans: cupy's arrays between the steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphkernel.errors import InputError, RuntimeFailure
from graphkernel.runtime.cuda.launch_action import launched
from graphkernel.runtime.inputs.torch_tensors import check_tensor, is_torch
from graphkernel.runtime.steps.program import Program, Segment
from graphkernel.runtime.steps.steps import Action, KernelStep, Slots
from kernelgen.errors import ArgumentError, UnsupportedError
from kernelgen.system.cached_property import cached_property
from kernelgen.targets.gpu.launch.arrays import Border
from kernelgen.targets.gpu.launch.device import Device, NoDevice, find_device

__all__ = ["Device", "DeviceMemory", "NoDevice", "find_device"]


@dataclass(eq=False)
class DeviceMemory:
    """The memory of a device, from cupy's pool. With ``debug`` the caller waits after every step, and failures name it."""

    device: Device
    debug: bool = False
    _constants: dict[int, tuple[np.ndarray, Any]] = field(
        default_factory=dict[int, "tuple[np.ndarray, Any]"], repr=False
    )

    @property
    def kind(self) -> type:
        """cupy's."""
        return self.device.cupy.ndarray

    @property
    def is_made_by_kernels(self) -> bool:
        """No: a kernel without operands would not know whose arrays its caller wants."""
        return False

    @property
    def joins_steps(self) -> bool:
        """No: kernels are started by the host."""
        return False

    @cached_property
    def border(self) -> Border:
        """How arrays of other libraries come in and go out."""
        return Border(self.device.cupy)

    def key(self, inputs: Sequence[Any]) -> Hashable:
        """Shapes and data types, and the stream: what was started on another one may still use its buffers. Devices too, as
        a frame's kernels are bound to one by the first call and look at it no more.
        """
        cuda = self.device.cupy.cuda
        place = cuda.runtime.getDevice(), cuda.get_current_stream().ptr
        return (*place, *[(array.shape, array.dtype, array.device.id) for array in inputs])

    def take(self, given: object, name: str) -> Any:
        """In place where it is on the device, else copied there. Raises InputError for what cannot be copied there."""
        if is_torch(given):
            check_tensor(given, name)
        try:
            return self.border.take(given, name)
        except ArgumentError as error:
            raise InputError(f"input {name}: {error}") from error

    def giver(self, arrays: Sequence[object]) -> Callable[[Any], Any] | None:
        """None: ``device_executable`` gives back itself."""
        return None

    def bytes(self, size: int) -> Any:
        """From cupy's pool, whose blocks start at multiples of 512 bytes."""
        return self.device.cupy.empty((size,), np.uint8)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """From cupy's pool."""
        return self.device.cupy.empty(shape, dtype)

    def constant(self, content: np.ndarray) -> Any:
        """Copied to the device when it is first asked for."""
        if id(content) not in self._constants:
            self._constants[id(content)] = content, self.device.cupy.asarray(content)
        return self._constants[id(content)][1]

    def is_writeable(self, array: Any) -> bool:
        """Always."""
        return True

    def bring_back(self, result: Any, place: Any) -> None:
        """Writes a result where the caller wants it, unless it is there already: on the device it was written in place."""
        if self.border.lives_on_device(place):
            own = self.take(place, "out")
            if own.data.ptr != result.data.ptr:
                np.copyto(own, result)
        else:
            np.copyto(np.asarray(place), self.device.cupy.asnumpy(result))

    def actions(self, program: Program, part: Segment, slots: Slots, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """Launches; with ``debug`` the actions themselves, where the caller waits for each and an error names the step."""
        steps = program.steps[part.first : part.last]
        if not self.debug:
            return tuple(launched(step, act, slots) for step, act in zip(steps, actions, strict=True))
        return tuple(_watched(step.name, act, self.wait) for step, act in zip(steps, actions, strict=True))

    def unwatched(self) -> DeviceMemory:
        """The same memory without waiting: a stream that is captured cannot be waited for."""
        return self if not self.debug else DeviceMemory(self.device, False, self._constants)

    def wait(self) -> None:
        """Returns when the current stream is done."""
        self.device.cupy.cuda.get_current_stream().synchronize()


Refusals = Mapping[str, Exception]
"""The names of nodes whose kernel a device does not take, each with the reason."""


def refusals_of(program: Program) -> Refusals:
    """Loads its kernels onto the current device, and says which it refuses."""
    found = {step.name: _refusal(step.kernel) for step in program.steps if isinstance(step, KernelStep)}
    return {name: error for name, error in found.items() if error is not None}


def _refusal(kernel: Any) -> Exception | None:  # any compiler's kernel
    load: Callable[[], None] | None = getattr(kernel, "load", None)
    try:
        if load is not None:
            load()
    except UnsupportedError as error:
        return error
    return None


def _watched(name: str, action: Action, wait: Callable[[], None]) -> Action:
    def call(slots: Slots) -> None:
        try:
            action(slots)
            wait()
        except RuntimeError as error:  # cupy's errors of the driver and of the runtime are of this class
            raise RuntimeFailure(f"{name} fails on the device: {error}") from error

    return call
