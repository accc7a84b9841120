"""A whole plan as one CUDA graph: launched at once, so that small graphs cost one launch instead of one a step.

A graph repeats what was recorded, on the same addresses. So a capture owns its inputs, its intermediates, its results and
whatever its operators take from the pool in between: a pool of its own, from which nobody else takes.
Source: CUDA C++ Programming Guide, "CUDA Graphs", stream capture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphkernel.errors import InputError, RuntimeFailure
from graphkernel.ops.library.random import is_random
from graphkernel.runtime.cuda.cupy_host import host_steps
from graphkernel.runtime.cuda.device import DeviceMemory
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.invocation import Frame, make_frame
from kernelgen.tensor.bind import bind


@dataclass(eq=False)
class CapturedPlan:
    """``captured(*arrays)`` is ``executable(*arrays)`` for arrays of the captured shapes, as one launch.

    ``inputs`` and ``outputs`` are cupy arrays of its own: who fills and reads them himself calls :meth:`replay` and
    saves the copies. One stream at a time may use a captured plan.
    """

    executable: Executable
    memory: DeviceMemory = field(repr=False)
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    graph: Any = field(repr=False)
    kept: tuple[Any, ...] = field(repr=False)

    def replay(self) -> None:
        """Computes ``outputs`` from ``inputs``, on cupy's current stream."""
        self.graph.launch()

    def __call__(self, *arrays: object, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Runs on any arrays: copied into ``inputs``; results are copies of ``outputs``, or in ``out``."""
        memory, border = self.memory, self.memory.border
        with border.stream_of(arrays if out is None else (*arrays, *out)):
            taken = [memory.take(array, f"input {position}") for position, array in enumerate(arrays)]
            self._check(taken)
            for own, array in zip(self.inputs, taken, strict=True):
                np.copyto(own, array)
            self.replay()
            for alias in self.executable.graph.aliases:
                memory.bring_back(self.inputs[alias.input], arrays[alias.input])
            if out is None:
                give = border.giver(arrays)
                return tuple([give(result.copy()) for result in self.outputs])
            for result, place in zip(self.outputs, out, strict=True):
                memory.bring_back(result, place)
            return tuple(out)

    def _check(self, arrays: Sequence[Any]) -> None:
        expected = [(array.shape, array.dtype) for array in self.inputs]
        found = [(array.shape, array.dtype) for array in arrays]
        if found != expected:
            texts = [", ".join(f"{dtype}{list(shape)}" for shape, dtype in one) for one in (expected, found)]
            raise InputError(f"captured for {texts[0]}, called with {texts[1]}; capture again for other shapes")


def capture(executable: Executable, memory: DeviceMemory, arrays: Sequence[object]) -> CapturedPlan:
    """Records the plan of ``executable``, whose buffers lie in ``memory``, for ``arrays`` like these; they are left as
    they are.

    Raises RuntimeFailure where a step computes on the host or draws anew, and where the driver refuses to record a
    step.
    """
    cuda = memory.device.cupy.cuda
    with memory.border.stream_of(arrays):
        given = [memory.take(array, f"input {position}") for position, array in enumerate(arrays)]
        there = cuda.get_current_stream().record()
    stream, pool = cuda.Stream(non_blocking=True), cuda.MemoryPool()
    with stream, cuda.using_allocator(pool.malloc):
        stream.wait_event(there)
        inputs = tuple(array.copy() for array in given)
        frame = make_frame(executable.program, bind(executable.graph, inputs), memory.unwatched())
        executable.run_in(frame, inputs)  # loads what is loaded when it is first used, and finds out who needs the host
        _check_host(executable, frame)
        for own, array in zip(inputs, given, strict=True):
            np.copyto(own, array)
        stream.synchronize()
        outputs, graph = _recorded(executable, frame, inputs, stream)
    return CapturedPlan(executable, memory, inputs, outputs, graph, (frame, pool))


def _check_host(executable: Executable, frame: Frame) -> None:
    drawn = (f"{node.op.name} {node.name}" for node in executable.graph.operators if is_random(node))
    found = (*((name, "a captured plan would repeat its numbers") for name in drawn), *host_steps(frame.actions))
    if found:
        reasons = "; ".join(f"{name}: {why}" for name, why in found)
        raise RuntimeFailure(f"a plan with steps on the host cannot be captured: {reasons}")


def _recorded(executable: Executable, frame: Frame, inputs: Sequence[Any], stream: Any) -> tuple[tuple[Any, ...], Any]:
    stream.begin_capture()
    try:
        outputs = executable.run_in(frame, inputs)
    except RuntimeError as error:
        stream.end_capture()
        raise RuntimeFailure(f"the driver does not capture this plan: {error}") from error
    return outputs, stream.end_capture()
