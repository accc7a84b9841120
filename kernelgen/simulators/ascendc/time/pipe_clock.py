"""The time of a core's pipes: in order, each instruction starts when it is issued, its pipe is free and its flags are set."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from kernelgen.ascendc.types import PIPES
from kernelgen.machines.ascend.description import Rates

SCALAR = PIPES.index("S")


@dataclass(frozen=True)
class Span:
    """An instruction's stay in its pipe, in cycles from the start of the kernel."""

    core: int
    pipe: str
    start: float
    stop: float
    operation: str
    line: int


class Clockwork:
    """Times of one core: the scalar unit's own, and when each pipe is free."""

    def __init__(self, core: int, rates: Rates, start: float) -> None:
        self._core = core
        self._rates = rates
        self._free = [start] * len(PIPES)
        self._queues: list[deque[float]] = [deque() for _ in PIPES]
        self.spans = list[Span]()

    @property
    def end(self) -> float:
        """When the last pipe is done."""
        return max(self._free)

    def issue(self, pipe: int) -> float:
        """The scalar unit issues an instruction; it waits where the pipe's queue is full."""
        queue = self._queues[pipe]
        now = self._free[SCALAR] + self._rates.issue
        if len(queue) >= self._rates.queue_depth:
            now = max(now, queue.popleft())
        self._free[SCALAR] = now
        return now

    def run(self, pipe: int, issued: float, cycles: float, operation: str, line: int) -> None:
        """An instruction takes its pipe."""
        start = max(self._free[pipe], issued)
        self._free[pipe] = start + cycles
        self._queues[pipe].append(start + cycles)
        self.spans.append(Span(self._core, PIPES[pipe], start, start + cycles, operation, line))

    def released(self, pipe: int, issued: float) -> float:
        """When a flag of the pipe is set."""
        self._free[pipe] = max(self._free[pipe], issued)
        return self._free[pipe]

    def wait(self, pipe: int, until: float) -> None:
        """The pipe goes on not before that time."""
        self._free[pipe] = max(self._free[pipe], until)

    def wait_all(self) -> None:
        """All pipes go on together."""
        self._free = [self.end] * len(PIPES)
