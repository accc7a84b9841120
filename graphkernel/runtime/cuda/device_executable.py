"""The callable of a plan on a CUDA device: everything on the caller's stream, and nobody waits.

Arrays of cupy, torch and others that lie on the device are used where they are, and results are of the same library.
numpy arrays are copied over, and results back, for which the caller waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from graphkernel.errors import RuntimeFailure
from graphkernel.runtime.cuda.capture import CapturedPlan, capture
from graphkernel.runtime.cuda.device import DeviceMemory, Refusals, refusals_of
from graphkernel.runtime.executable import Executable, sequence_of_outputs
from graphkernel.runtime.inputs.named_inputs import are_named, inputs_of_call
from graphkernel.runtime.plan.plan import Plan
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import is_object

if TYPE_CHECKING:
    from graphkernel.report.report import Report

Replan = Callable[[Refusals], Executable]
"""The executable of the same graph without the kernels that a device refused."""


def check_values(graph: Graph) -> None:
    """Raises ``RuntimeFailure`` for a graph with values that are no arrays of numbers: no device holds them."""
    for node in graph.nodes:
        for value in node.outs:
            if is_object(value.type.dtype):
                raise RuntimeFailure(
                    f"{node.name} is {value.type}, which a device cannot hold: compile with target='cpu', which runs all models"
                )


class DeviceExecutable(Executable):
    """An executable whose plan runs on a device. Several threads may call at once, each on a stream of its own."""

    def __init__(self, plan: Plan, report: Report, memory: DeviceMemory, replan: Replan) -> None:
        super().__init__(plan, report, memory)
        self.device, self.replan = memory, replan
        self._ready: set[int] = set()
        self._lock = Lock()

    def __call__(self, /, *arrays: object, out: Sequence[Any] | None = None, **named: object) -> tuple[Any, ...]:
        """Runs the graph on the caller's stream: torch's current one for tensors of torch, else cupy's."""
        self.load()
        if are_named(arrays, named):
            arrays = inputs_of_call(self.input_names, arrays, named)
        border = self.device.border
        if out is not None:
            out = sequence_of_outputs(out, self.memory.kind)
        with border.stream_of(arrays if out is None else (*arrays, *out)):
            inputs = [self._taken(array, position) for position, array in enumerate(arrays)]
            stays = out is not None and all(map(border.lives_on_device, out))
            results = super().__call__(*inputs, out=[border.take(one, "out") for one in out] if stays and out else None)
            for position, _ in self.program.aliases:
                self.device.bring_back(inputs[position], arrays[position])
            if out is None:
                give = border.giver(arrays)
                return tuple([give(result) for result in results])
            for result, place in zip(results, out, strict=True) if not stays else ():
                self.device.bring_back(result, place)
            return tuple(out)

    def load(self) -> None:
        """Loads all kernels onto the current device, before the first of them runs there.

        What it refuses is computed by the host library from then on, and stands in ``report.fallbacks``.
        """
        number = int(self.device.device.cupy.cuda.runtime.getDevice())
        if number in self._ready:
            return
        with self._lock:
            while refusals := refusals_of(self.program):
                other = self.replan(refusals)
                self.replaced(other.plan, other.report)
                self._run_from_now_on(other.over(self.communicators).program)
            self._ready.add(number)

    def capture(self, *arrays: object) -> CapturedPlan:
        """The plan for arrays of these shapes as one CUDA graph: see :mod:`graphkernel.runtime.cuda.capture`."""
        self.load()
        return capture(self, self.device, arrays)
