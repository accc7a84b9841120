"""The order of a core's pipes as vector clocks: the manual's rules, once for all who apply them.

    issue      what the scalar unit knows holds for all that it issues later
    set        hands over the clock of its source, with everything that the source did before
    wait       joins what was handed over into the target's clock
    barrier    closes one pipe: its own instructions are over; for all pipes: those of every pipe

A pipe's own number grows by a barrier only, for issue order is not completion. The scalar unit is in order with itself, but
its writes are known to a pipe only by a flag.

Shared is this much, what the hardware documents. How events are found is not: the simulator runs the text that was printed,
the generator walks over statements that are not printed yet and keeps what it has to prove as steps. Neither takes another's
word for what an instruction touches or which flag it meets, so that a fault of the generator does not repeat in the
simulator.
"""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

from kernelgen.ascendc.types import PIPES

SCALAR = PIPES.index("S")


class Clock(Protocol):
    """What is over: for each pipe, all its instructions before a number."""

    def join(self, other: Self, /) -> Self:
        """What either knows."""
        ...

    def past(self, pipe: int, number: int, /) -> Self:
        """The same with a pipe's instructions before ``number`` over."""
        ...


class CoreClock(tuple[int, ...]):
    """A clock for the pipes of one core."""

    __slots__ = ()

    def join(self, other: CoreClock) -> CoreClock:
        """What either knows."""
        if other is self:
            return self
        return CoreClock([mine if mine > theirs else theirs for mine, theirs in zip(self, other, strict=True)])

    def past(self, pipe: int, number: int) -> CoreClock:
        """The same with a pipe's instructions before ``number`` over."""
        return CoreClock((*self[:pipe], number, *self[pipe + 1 :]))


NOTHING = CoreClock((0,) * len(PIPES))

AnyClock = TypeVar("AnyClock", bound=Clock)
Key = TypeVar("Key")
Handed = TypeVar("Handed")


class Clocks(Generic[AnyClock]):
    """The clocks of one core's pipes, and the numbers of their next instructions."""

    def __init__(self, nothing: AnyClock) -> None:
        self._known = [nothing] * len(PIPES)
        self._heard = list(self._known)
        self._next = [0] * len(PIPES)

    @property
    def scalar(self) -> AnyClock:
        """What the scalar unit knows."""
        return self._known[SCALAR]

    def of(self, pipe: int) -> AnyClock:
        """What a pipe knows."""
        return self._known[pipe]

    def step(self, pipe: int) -> int:
        """The number of the pipe's next instruction, which is done."""
        number = self._next[pipe]
        self._next[pipe] = number + 1
        return number

    def reach(self, pipe: int, number: int) -> None:
        """The pipe has done its instructions before ``number``."""
        self._next[pipe] = number

    def join(self, pipe: int, clock: AnyClock) -> AnyClock:
        """What the pipe knows when it has learnt what a clock knows."""
        if clock is not self._heard[pipe]:
            self._known[pipe] = self._known[pipe].join(clock)
            self._heard[pipe] = clock
        return self._known[pipe]

    def issue(self, pipe: int) -> AnyClock:
        """What the pipe knows at an instruction that the scalar unit issues now."""
        return self.join(pipe, self._known[SCALAR])

    def released(self, pipe: int) -> AnyClock:
        """What is known after everything that the pipe did so far."""
        return self._known[pipe].past(pipe, self._next[pipe])

    def close(self, pipe: int) -> None:
        """A barrier: the pipe knows that its own instructions are over."""
        self._known[pipe] = self.released(pipe)

    def close_all(self) -> None:
        """A barrier of all pipes: each knows that the instructions of all are over."""
        everything = self.released(SCALAR)
        for pipe in range(len(PIPES)):
            everything = everything.join(self.released(pipe))
        self._known = [everything] * len(PIPES)


class FlagTable(Generic[Key, Handed]):
    """Which flags are set and what their sets handed over, and which wait cleared each last."""

    def __init__(self) -> None:
        self._set: dict[Key, Handed] = {}
        self._waits: dict[Key, int] = {}

    def set(self, key: Key, handed: Handed) -> bool:
        """Sets a flag; False where it is set already."""
        if key in self._set:
            return False
        self._set[key] = handed
        return True

    def take(self, key: Key) -> Handed | None:
        """Clears a flag; None where it is not set."""
        return self._set.pop(key, None)

    def waited(self, key: Key, number: int) -> None:
        """Writes down the number of the wait that cleared the flag, in the target's pipe."""
        self._waits[key] = number

    def is_free(self, key: Key, target: int, known: CoreClock) -> bool:
        """Whether who sets a flag knows that its last wait is over.

        What the scalar unit waited for is over before it issues anything more, a set too.
        """
        last = None if target == SCALAR else self._waits.get(key)
        return last is None or known[target] > last
