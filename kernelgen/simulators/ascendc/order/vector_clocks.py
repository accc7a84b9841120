"""The clocks (:mod:`kernelgen.ascendc.clocks`) of a launch: what each pipe knows of its own core, and of cores it has met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.ascendc import clocks
from kernelgen.ascendc.clocks import NOTHING, CoreClock
from kernelgen.ascendc.types import PIPES


@dataclass(frozen=True, slots=True)
class Clock:
    """What is over: ``own`` for the pipes of the core that keeps the clock, ``far`` for those of all cores.

    ``far`` is the same array until cores meet, so that its joins cost nothing.
    """

    own: CoreClock
    far: np.ndarray

    def join(self, other: Clock) -> Clock:
        """What either knows, both kept by one core."""
        if other is self:
            return self
        far = self.far if self.far is other.far else np.maximum(self.far, other.far)
        return Clock(self.own.join(other.own), far)

    def past(self, pipe: int, number: int) -> Clock:
        """The same with a pipe's instructions before ``number`` over."""
        return Clock(self.own.past(pipe, number), self.far)

    def whole(self, first: int) -> np.ndarray:
        """One array for all cores; the own part belongs from number ``first`` on."""
        found = self.far.copy()
        found[first : first + len(PIPES)] = self.own
        return found


@dataclass(frozen=True)
class Mark:
    """A flag that is set: a clock, the time, and the line of the set."""

    clock: Clock
    time: float
    line: int


@dataclass(frozen=True)
class Meeting:
    """A count of a cross-core flag: what all who set it know, and the time."""

    clock: np.ndarray
    time: float


def joined(marks: Sequence[Meeting]) -> Meeting:
    """What any of them knows, at the latest of their times."""
    return Meeting(np.maximum.reduce([one.clock for one in marks]), max(one.time for one in marks))


class Clocks(clocks.Clocks[Clock]):
    """The clocks of one core's pipes."""

    def __init__(self, core: int, nothing: np.ndarray) -> None:
        super().__init__(Clock(NOTHING, nothing))
        self.first = core * len(PIPES)

    def knows(self, pipe: int, core: int, other: int, number: int) -> bool:
        """Whether the pipe knows that an instruction of another pipe, of any core, is over."""
        known, first = self.of(pipe), core * len(PIPES)
        return bool((known.own[other] if first == self.first else known.far[first + other]) > number)

    def meet(self, pipe: int, clock: np.ndarray) -> None:
        """The pipe learns what other cores know."""
        own = CoreClock(clock[self.first : self.first + len(PIPES)].tolist())
        self.join(pipe, Clock(own, clock))
