"""The pipes of one core: queues of what was issued, the order that flags and barriers make, the time that it takes.

An instruction runs as soon as its pipe comes to it. Where a pipe waits for a flag, what follows in that pipe queues up. The
order of running is one that the flags allow; that no other order gives another result is what the clocks prove.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kernelgen.ascendc.clocks import SCALAR, CoreClock
from kernelgen.ascendc.types import PIPES
from kernelgen.simulators.ascendc.core.launch_state import Surroundings
from kernelgen.simulators.ascendc.order.core_flags import Seat
from kernelgen.simulators.ascendc.order.event_log import (
    BARRIER,
    CROSS_SET,
    CROSS_WAIT,
    DRAIN,
    NOW,
    SET,
    WAIT,
    WORK,
    Event,
)
from kernelgen.simulators.ascendc.order.flags import Flags, Key
from kernelgen.simulators.ascendc.order.global_memory import Access
from kernelgen.simulators.ascendc.order.vector_clocks import Clock, Clocks, Mark, Meeting
from kernelgen.simulators.ascendc.state.instruction import Touch, Work
from kernelgen.simulators.ascendc.state.memory import Buffer, Memory
from kernelgen.simulators.ascendc.time.pipe_clock import Clockwork

Gate = Callable[[], bool]
"""What the scalar unit waits for: True when it may go on."""
Act = Callable[[int], bool]
"""Done by a pipe, with the number of its issue; False where the pipe must wait."""


@dataclass(frozen=True)
class Item:
    """What a pipe will do. ``known`` is what the scalar unit knew at issue."""

    pipe: int
    act: Act
    known: Clock
    line: int
    text: str
    issued: int


class Pipes:
    """The pipes of a core that runs one block."""

    def __init__(self, around: Surroundings, seat: Seat, where: str, start: float) -> None:
        self._around = around
        self._seat = seat
        self._where = where
        self._queues: list[deque[Item]] = [deque() for _ in PIPES]
        self._clocks = Clocks(seat.index, around.nothing)
        self.flags = Flags(around.machine)
        self.times = Clockwork(seat.index, around.machine.rates, start)

    def work(self, pipe: int, work: Work, operation: str, line: int) -> None:
        """Issues an instruction."""
        ready = self.times.issue(pipe)

        def act(issued: int) -> bool:
            self._settle(pipe, work, line, issued)
            self.times.run(pipe, ready, work.cycles, operation, line)
            self._around.gm_bytes += work.gm_bytes
            return True

        self._issue(pipe, act, line, operation)

    def scalar(self, work: Work, operation: str, line: int) -> None:
        """The scalar unit touches an element."""
        self._settle(SCALAR, work, line, NOW)
        self.times.run(SCALAR, self.times.issue(SCALAR), work.cycles, operation, line)

    def set_flag(self, key: Key, line: int) -> None:
        """Issues a SetFlag to the source of its pair."""
        pipe = PIPES.index(key[0])
        ready = self.times.issue(pipe)

        def act(issued: int) -> bool:
            mark = Mark(self._clocks.released(pipe), self.times.released(pipe, ready), line)
            self._note(SET, pipe, issued, line, self._clocks.step(pipe), key)
            if not self.flags.set(key, mark):
                raise self._around.findings.stop("double-set", line, self._where, f"{_named(key)} is set twice")
            if not self.flags.is_free(key, PIPES.index(key[1]), mark.clock.own):
                message = f"{_named(key)}: its last wait may still be to come"
                self._around.findings.add("flag-reused", line, self._where, message)
            return True

        self._issue(pipe, act, line, "SetFlag", key)

    def wait_flag(self, key: Key, line: int) -> Gate | None:
        """Issues a WaitFlag to the target of its pair; where that is the scalar unit, gives what it waits for."""
        pipe = PIPES.index(key[1])
        ready = self.times.issue(pipe)

        def act(issued: int) -> bool:
            mark = self.flags.take(key)
            if mark is None:
                return False
            number = self._clocks.step(pipe)
            self._note(WAIT, pipe, issued, line, number, key)
            self.flags.waited(key, number)
            self._clocks.join(pipe, mark.clock)
            self.times.wait(pipe, max(mark.time, ready))
            return True

        if pipe == SCALAR:
            return lambda: self._pumped(act)
        self._issue(pipe, act, line, "WaitFlag", key)
        return None

    def barrier(self, pipe: int, line: int) -> None:
        """Issues a barrier of one pipe."""
        self.times.issue(pipe)

        def act(issued: int) -> bool:
            self._note(BARRIER, pipe, issued, line)
            self._clocks.close(pipe)
            return True

        self._issue(pipe, act, line, "PipeBarrier")

    def drained(self, line: int) -> bool:
        """A barrier of all pipes: whether all that was issued is done."""
        if not self.pump():
            return False
        self._note(DRAIN, SCALAR, NOW, line)
        self._clocks.close_all()
        self.times.wait_all()
        return True

    def cross_set(self, pipe: int, mode: int, identity: int, line: int) -> None:
        """Issues a CrossCoreSetFlag."""
        ready = self.times.issue(pipe)

        def act(issued: int) -> bool:
            if self._around.ledger is not None:
                event = Event(CROSS_SET, self._seat, pipe, issued, line, mode=mode, identity=identity)
                self._around.ledger.note(event)
            clock = self._clocks.released(pipe).whole(self._clocks.first)
            mark = Meeting(clock, self.times.released(pipe, ready))
            if not self._around.meetings.set(self._seat, mode, identity, mark):
                raise self._around.findings.stop("bad-event", line, self._where, f"counter {identity} runs over")
            return True

        self._issue(pipe, act, line, f"CrossCoreSetFlag {identity}")

    def met(self, identity: int, line: int) -> bool:
        """A CrossCoreWaitFlag: whether the count was there."""
        self.pump()
        mark = self._around.meetings.wait(self._seat, identity)
        if mark is None:
            return False
        if self._around.ledger is not None:
            self._around.ledger.note(Event(CROSS_WAIT, self._seat, SCALAR, NOW, line, identity=identity))
        self._clocks.meet(SCALAR, mark.clock)
        self.times.wait(SCALAR, mark.time)
        return True

    def pump(self) -> bool:
        """Lets the pipes go on as far as they can; whether all queues are empty then."""
        moved = True
        while moved:
            moved = False
            for queue in self._queues:
                while queue and self._act(queue[0]):
                    queue.popleft()
                    moved = True
        return not any(self._queues)

    def waiting(self) -> list[Item]:
        """What the pipes stand at that do not go on."""
        return [queue[0] for queue in self._queues if queue]

    def _pumped(self, act: Act) -> bool:
        self.pump()
        return act(NOW)

    def _issue(self, pipe: int, act: Act, line: int, text: str, key: Key | None = None) -> None:
        queue = self._queues[pipe]
        known = self._clocks.scalar
        if not queue:
            self._clocks.join(pipe, known)
            if act(NOW):
                if any(self._queues):
                    self.pump()
                return
        ledger = self._around.ledger
        issued = NOW if ledger is None else ledger.issue(self._seat, pipe, line)
        queue.append(Item(pipe, act, known, line, text if key is None else f"{text} {_named(key)}", issued))

    def _act(self, item: Item) -> bool:
        self._clocks.join(item.pipe, item.known)
        return item.act(item.issued)

    def _note(self, kind: str, pipe: int, issued: int, line: int, number: int = 0, key: Key | None = None) -> None:
        if self._around.ledger is not None:
            self._around.ledger.note(Event(kind, self._seat, pipe, issued, line, number, key))

    def _settle(self, pipe: int, work: Work, line: int, issued: int) -> None:
        """An instruction takes effect: its order is checked, its bytes are read and written."""
        number = self._clocks.step(pipe)
        if self._around.ledger is not None:
            self._around.ledger.note(Event(WORK, self._seat, pipe, issued, line, number, touches=work.touches))
            return
        own = self._clocks.of(pipe).own
        for touch in work.touches:
            self._check(touch, pipe, number, own, line)
        work.run()
        for touch in work.touches:
            if isinstance(touch.memory, Memory):
                touch.memory.note(touch.region, pipe, number, touch.write)
            if touch.write and (touch.whole or isinstance(touch.memory, Buffer)):
                touch.marks[...] = True

    def _check(self, touch: Touch, pipe: int, number: int, own: CoreClock, line: int) -> None:
        findings, memory = self._around.findings, touch.memory
        if isinstance(memory, Buffer):
            self._note_sharing(memory, touch, pipe, number, line)
        else:
            found = memory.conflict(touch.region, pipe, own, touch.write)
            if found is not None:
                message = f"{PIPES[pipe]} and {PIPES[found[1]]}, {_bytes(touch)}"
                findings.add(found[0], line, self._where, message)
        if not touch.write and touch.whole and not touch.marks.all():
            raise findings.stop("uninitialised", line, self._where, _bytes(touch))

    def _note_sharing(self, buffer: Buffer, touch: Touch, pipe: int, number: int, line: int) -> None:
        if touch.write and not buffer.writable:
            raise self._around.findings.stop("read-only-written", line, self._where, f"{buffer.name} is an input")
        access = Access(touch.region, self._seat.index, pipe, number, touch.write, self._clocks.of(pipe), line)
        self._around.sharing.note(buffer.name, access)


def _named(key: Key) -> str:
    return f"{key[0]}_{key[1]} {key[2]}"


def _bytes(touch: Touch) -> str:
    return f"bytes {touch.region.start} to {touch.region.stop} of {touch.memory.name}"
