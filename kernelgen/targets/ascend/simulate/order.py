"""The order proof: what each pipe knows to be over, as vector clocks.

A clock has one number for every core and pipe: so many of its instructions are over. A pipe's own number grows only by a
barrier, for issue order is not completion. A set hands over the clock of its source, with everything that the source did
before; a wait joins it into the target's; what the scalar unit knows holds for all that it issues later. The scalar unit
is in order with itself, but its writes are known to a pipe only by a flag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelgen.targets.ascend.types import PIPES

SCALAR = PIPES.index("S")


@dataclass(frozen=True)
class Mark:
    """A flag that is set, or the wait that cleared it: a clock and the time."""

    clock: np.ndarray
    time: float


class Clocks:
    """The clocks of one core's pipes, and the numbers of their instructions."""

    def __init__(self, core: int, cores: int) -> None:
        self.first = core * len(PIPES)
        self._known = [np.zeros(cores * len(PIPES), np.int32) for _ in PIPES]
        self._next = [0] * len(PIPES)

    @property
    def scalar(self) -> np.ndarray:
        """What the scalar unit knows; never changed in place."""
        return self._known[SCALAR]

    def of(self, pipe: int) -> np.ndarray:
        """What a pipe knows about all cores; never changed in place."""
        return self._known[pipe]

    def own(self, pipe: int) -> np.ndarray:
        """What a pipe knows about the pipes of its own core."""
        return self._known[pipe][self.first : self.first + len(PIPES)]

    def step(self, pipe: int) -> int:
        """The number of the pipe's next instruction."""
        self._next[pipe] += 1
        return self._next[pipe] - 1

    def join(self, pipe: int, clock: np.ndarray) -> None:
        """The pipe learns what a clock knows."""
        if clock is not self._known[pipe]:
            self._known[pipe] = np.maximum(self._known[pipe], clock)

    def released(self, pipe: int) -> np.ndarray:
        """What is known after everything that the pipe did so far."""
        clock = self._known[pipe].copy()
        clock[self.first + pipe] = self._next[pipe]
        return clock

    def knows(self, clock: np.ndarray, pipe: int, number: int) -> bool:
        """Whether a clock knows that an instruction of one of this core's pipes is over."""
        return bool(clock[self.first + pipe] > number)

    def close(self, pipe: int) -> None:
        """A barrier: the pipe knows that its own instructions are over."""
        self._known[pipe] = self.released(pipe)

    def close_all(self) -> None:
        """A barrier for all pipes."""
        everything = np.maximum.reduce([self.released(pipe) for pipe in range(len(PIPES))])
        self._known = [everything] * len(PIPES)
