"""The order proof: what each pipe knows to be over, as vector clocks.

A clock has one number for every core and pipe: so many of its instructions are over. A pipe's own number grows only by a
barrier, for issue order is not completion. A set hands over the clock of its source, with everything that the source did
before; a wait joins it into the target's; what the scalar unit knows holds for all that it issues later. The scalar unit
is in order with itself, but its writes are known to a pipe only by a flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.ascendc.types import PIPES

SCALAR = PIPES.index("S")
Own = tuple[int, ...]
"""The part of a clock for the pipes of one core."""
NOTHING: Own = (0,) * len(PIPES)


@dataclass(frozen=True, slots=True)
class Clock:
    """What is over: ``own`` for the pipes of the core that keeps the clock, ``far`` for those of all cores.

    ``far`` is the same array until cores meet, so that its joins cost nothing.
    """

    own: Own
    far: np.ndarray

    def join(self, other: Clock) -> Clock:
        """What either knows, both kept by one core."""
        if other is self:
            return self
        own = tuple(map(max, self.own, other.own))
        far = self.far if self.far is other.far else np.maximum(self.far, other.far)
        return Clock(own, far)

    def whole(self, first: int) -> np.ndarray:
        """One array for all cores; the own part belongs from number ``first`` on."""
        found = self.far.copy()
        found[first : first + len(PIPES)] = self.own
        return found


@dataclass(frozen=True)
class Mark:
    """A flag that is set: a clock and the time."""

    clock: Clock
    time: float


@dataclass(frozen=True)
class Meeting:
    """A count of a cross-core flag: what all who set it know, and the time."""

    clock: np.ndarray
    time: float


def joined(marks: Sequence[Meeting]) -> Meeting:
    """What any of them knows, at the latest of their times."""
    return Meeting(np.maximum.reduce([one.clock for one in marks]), max(one.time for one in marks))


class Clocks:
    """The clocks of one core's pipes, and the numbers of their instructions."""

    def __init__(self, core: int, nothing: np.ndarray) -> None:
        self.first = core * len(PIPES)
        self._known = [Clock(NOTHING, nothing)] * len(PIPES)
        self._joined = list(self._known)
        self._next = [0] * len(PIPES)

    @property
    def scalar(self) -> Clock:
        """What the scalar unit knows."""
        return self._known[SCALAR]

    def of(self, pipe: int) -> Clock:
        """What a pipe knows."""
        return self._known[pipe]

    def step(self, pipe: int) -> int:
        """The number of the pipe's next instruction."""
        number = self._next[pipe]
        self._next[pipe] = number + 1
        return number

    def reach(self, pipe: int, number: int) -> None:
        """The pipe comes to an instruction whose number is known."""
        self._next[pipe] = number + 1

    def knows(self, pipe: int, core: int, other: int, number: int) -> bool:
        """Whether the pipe knows that an instruction of another pipe, of any core, is over."""
        known, first = self._known[pipe], core * len(PIPES)
        return bool((known.own[other] if first == self.first else known.far[first + other]) > number)

    def join(self, pipe: int, clock: Clock) -> None:
        """The pipe learns what a clock of this core knows."""
        if clock is not self._joined[pipe]:
            self._known[pipe] = self._known[pipe].join(clock)
            self._joined[pipe] = clock

    def meet(self, pipe: int, clock: np.ndarray) -> None:
        """The pipe learns what other cores know."""
        own = tuple(clock[self.first : self.first + len(PIPES)].tolist())
        self.join(pipe, Clock(own, clock))

    def released(self, pipe: int) -> Clock:
        """What is known after everything that the pipe did so far."""
        known = self._known[pipe]
        return Clock((*known.own[:pipe], self._next[pipe], *known.own[pipe + 1 :]), known.far)

    def close(self, pipe: int) -> None:
        """A barrier: the pipe knows that its own instructions are over."""
        self._known[pipe] = self.released(pipe)

    def close_all(self) -> None:
        """A barrier for all pipes."""
        everything = self.released(0)
        for pipe in range(1, len(PIPES)):
            everything = everything.join(self.released(pipe))
        self._known = [everything] * len(PIPES)
