"""How long calls and steps take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from graphkernel.runtime.executable import Executable
from graphkernel.runtime.inputs.arrays import Array
from graphkernel.runtime.invocation import make_frame
from graphkernel.runtime.memory import HostMemory
from graphkernel.runtime.steps.collective import WaitStep
from graphkernel.runtime.steps.steps import Action, KernelStep, PlacesStep, ShapeStep, Slots, Step, ViewStep
from kernelgen.tensor.bind import bind_all

KINDS: Mapping[type, str] = {
    KernelStep: "kernel",
    ViewStep: "view",
    PlacesStep: "places",
    ShapeStep: "extents",
    WaitStep: "wait",
}
"""What steps are called that no library runs: beside kernels they are ours, and no step that a report lists."""

LEAST_SECONDS = 2e-3  # of one measurement: a short call is made so often that the clock can tell


@dataclass(frozen=True)
class Spread:
    """Seconds of one call: the middle, the least and the greatest of the rounds."""

    median: float
    least: float
    greatest: float


@dataclass(frozen=True)
class StepTime:
    """How long a step of a plan takes. ``kind``: host for the steps that a report calls so, else what :data:`KINDS` says."""

    name: str
    kind: str
    seconds: Spread


def profile(executable: Executable, arrays: Sequence[Array], rounds: int) -> tuple[StepTime, ...]:
    """The seconds of every step of the ``executable``'s plan on the inputs ``arrays``, in the order of the plan: their
    spread over so many ``rounds``, behind two that are not counted.
    """
    program = executable.program
    memory = executable.memory
    if isinstance(memory, HostMemory) and memory.joins_steps:
        memory = HostMemory(joins_steps=False)
    given = [memory.take(array, f"input {position}") for position, array in enumerate(arrays)]
    frame = make_frame(program, bind_all(program.kinds, program.derived, given), memory)
    seconds: list[list[float]] = [[] for _ in program.steps]
    timed = frame._replace(
        actions=tuple(_timed(*pair, memory.wait) for pair in zip(frame.actions, seconds, strict=True))
    )
    results = executable.run_in(frame, given)
    # Of results that are made anew the first touch of each page would count as time of the step that stores there.
    out = [memory.empty(result.shape, result.dtype) for result in results]
    executable.run_in(frame, given, out)
    for _ in range(rounds):
        executable.run_in(timed, given, out)
    return tuple(
        StepTime(step.name, _kind(step), spread_of(found)) for step, found in zip(program.steps, seconds, strict=True)
    )


def seconds_of(call: Callable[[], object], often: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The seconds of one call by a ``clock``, as the mean of so many."""
    start = clock()
    for _ in range(often):
        call()
    return (clock() - start) / often


def how_often(call: Callable[[], object]) -> int:
    """How many calls the clock can tell the time of. Calls twice."""
    call()
    start = time.perf_counter()
    call()
    return 1 + int(LEAST_SECONDS / max(time.perf_counter() - start, 1e-7))


def _timed(action: Action, seconds: list[float], wait: Callable[[], None]) -> Action:
    def call(slots: Slots) -> None:
        start = time.perf_counter()
        action(slots)
        wait()
        seconds.append(time.perf_counter() - start)

    return call


def _kind(step: Step) -> str:
    return KINDS.get(type(step), "host")


def spread_of(seconds: Sequence[float]) -> Spread:
    """The middle and the ends of what was measured."""
    return Spread(statistics.median(seconds), min(seconds), max(seconds))
