"""Which flags and barriers of a kernel's text does the order proof do without?

The text is read back and launched without data (:mod:`simulate.outline`). What the pipes did is then gone through again
without one flag or one barrier: the clocks are built anew, and every access must still know that the earlier accesses to
its bytes are over. A flag is all sets and waits that belong together: a wait belongs to the sets that it met. A flag or
barrier is needed where some launch fails without it; kernels of open sizes and of any number of blocks have many launches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelgen.ascendc.clocks import NOTHING, SCALAR, FlagTable
from kernelgen.ascendc.instructions import Call, For, If, Kernel, Statement
from kernelgen.ascendc.types import PIPES
from kernelgen.errors import ProofError
from kernelgen.machines.ascend.description import Machine
from kernelgen.simulators.ascendc.launch import seats_of
from kernelgen.simulators.ascendc.order.core_flags import Meetings, Seat
from kernelgen.simulators.ascendc.order.event_log import (
    BARRIER,
    CROSS_SET,
    CROSS_WAIT,
    DRAIN,
    ISSUE,
    NOW,
    SET,
    WAIT,
    WORK,
    Event,
    Ledger,
)
from kernelgen.simulators.ascendc.order.flags import Key
from kernelgen.simulators.ascendc.order.global_memory import rivals
from kernelgen.simulators.ascendc.order.vector_clocks import Clock, Clocks, Meeting
from kernelgen.simulators.ascendc.outline import Launch, outline
from kernelgen.simulators.ascendc.state.instruction import Touch
from kernelgen.simulators.ascendc.state.memory import Memory

LIMITS = (10_000, 50_000, 300_000)
"""Statements of a launch that are looked at: a flag that is needed is mostly needed soon."""


@dataclass(frozen=True)
class Group:
    """A flag or a barrier, by its lines of the text."""

    kind: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind}, line {', '.join(map(str, self.lines))}"


@dataclass(frozen=True)
class Minimality:
    """The flags and barriers that launches came across, and those of them that no launch needs.

    ``unseen`` are lines that no launch came to; ``cut`` says that some launches were not looked at to their ends.
    """

    groups: tuple[Group, ...]
    idle: tuple[Group, ...]
    unseen: tuple[int, ...]
    runs: int
    cut: bool


Needs = Mapping[tuple[int, int], int]
"""(core, pipe) -> the number of its latest instruction that must be over."""


@dataclass(frozen=True)
class Proof:
    """The events of a launch, each with what must be over when it starts."""

    events: Sequence[Event]
    needs: Sequence[Needs]
    seats: Sequence[Seat]
    nothing: Clock

    def holds(self, without: Collection[int] = (), met: set[tuple[int, int]] | None = None) -> bool:
        """Whether the order is proved without the flags and barriers of some lines.

        ``met`` is filled with (line of a wait, line of the set that it met).
        """
        return _Replay(self, set() if met is None else met).run(without)


def proof_of(ledger: Ledger, cores: int) -> Proof:
    """What a launch has to prove: every access comes after the latest of each pipe that it clashes with."""
    needs: list[dict[tuple[int, int], int]] = [{} for _ in ledger.events]
    spaces: dict[tuple[str, int], list[tuple[int, Touch]]] = {}
    for at, event in enumerate(ledger.events):
        for touch in event.touches:
            core = event.seat.index if isinstance(touch.memory, Memory) else -1
            spaces.setdefault((touch.memory.name, core), []).append((at, touch))
    for accesses in spaces.values():
        events = [ledger.events[at] for at, _ in accesses]
        pipes = [(event.seat.index, event.pipe) for event in events]
        touched = [(touch.region, touch.write, pipe) for (_, touch), pipe in zip(accesses, pipes, strict=True)]
        for earlier, later in rivals(touched):
            ordered = pipes[earlier] == pipes[later] and pipes[later][1] == SCALAR
            if not ordered and events[earlier] is not events[later]:
                wanted = needs[accesses[later][0]]
                wanted[pipes[earlier]] = max(events[earlier].number, wanted.get(pipes[earlier], -1))
    seats = tuple(dict.fromkeys(event.seat for event in ledger.events))
    return Proof(ledger.events, needs, seats, Clock(NOTHING, np.zeros(cores * len(PIPES), np.int32)))


@dataclass
class _Replay:
    """The clocks of a launch, built once more."""

    proof: Proof
    met: set[tuple[int, int]]
    flags: FlagTable[tuple[int, Key], tuple[Clock, int]] = field(
        default_factory=FlagTable[tuple[int, Key], tuple[Clock, int]]
    )
    issued: dict[int, Clock] = field(default_factory=dict[int, Clock])

    def run(self, without: Collection[int]) -> bool:
        """Whether every access is ordered and every flag is free when it is set."""
        clocks = {seat.index: Clocks(seat.index, self.proof.nothing.far) for seat in self.proof.seats}
        meetings = Meetings(self.proof.seats)
        for at, event in enumerate(self.proof.events):
            if event.line in without and event.kind in (SET, WAIT, BARRIER, DRAIN):
                continue
            own = clocks[event.seat.index]
            if event.kind == ISSUE:
                self.issued[at] = own.scalar
                continue
            own.join(event.pipe, own.scalar if event.issued == NOW else self.issued[event.issued])
            if not self.step(event, own, meetings, self.proof.needs[at]):
                return False
        return True

    def step(self, event: Event, clocks: Clocks, meetings: Meetings, needs: Needs) -> bool:
        """One event."""
        match event.kind:
            case kind if kind == WORK:
                clocks.reach(event.pipe, event.number + 1)
                return all(clocks.knows(event.pipe, core, pipe, number) for (core, pipe), number in needs.items())
            case kind if kind in (SET, WAIT):
                return self.flag(event, clocks)
            case kind if kind == BARRIER:
                clocks.close(event.pipe)
            case kind if kind == DRAIN:
                clocks.close_all()
            case kind if kind == CROSS_SET:
                clock = clocks.released(event.pipe).whole(clocks.first)
                meetings.set(event.seat, event.mode, event.identity, Meeting(clock, 0.0))
            case kind if kind == CROSS_WAIT:
                mark = meetings.wait(event.seat, event.identity)
                if mark is None:
                    return False
                clocks.meet(SCALAR, mark.clock)
            case _:
                pass
        return True

    def flag(self, event: Event, clocks: Clocks) -> bool:
        """A set or a wait; False where a flag is set while its last wait may still be to come."""
        if event.key is None:
            return False
        key = (event.seat.index, event.key)
        if event.kind == SET:
            mark = clocks.released(event.pipe)
            clocks.reach(event.pipe, event.number + 1)
            free = self.flags.is_free(key, PIPES.index(event.key[1]), mark.own)
            return self.flags.set(key, (mark, event.line)) and free
        handed = self.flags.take(key)
        if handed is None:
            return False
        mark, line = handed
        clocks.reach(event.pipe, event.number + 1)
        self.flags.waited(key, event.number)
        self.met.add((event.line, line))
        clocks.join(event.pipe, mark)
        return True


def minimality(kernel: Kernel, launches: Sequence[Launch], machine: Machine) -> Minimality:
    """Looks at launches until each flag and barrier is needed by one of them. Raises ProofError where a launch has no order.

    First at the beginning of each, then, where that does not show it, at more. The barrier that ends a kernel is the
    frame's and is left out. The kernel must have been read from a text.
    """
    lines = dict(sync_lines(kernel.body[:-1]))
    groups = _Components()
    needed: set[int] = set()
    count = 0
    begun, through = set[int](), set[int]()
    for number, launch, limit in ((k, each, limit) for limit in LIMITS for k, each in enumerate(launches)):
        if number in through:
            continue
        run = outline(kernel, launch, machine, limit)
        proof = proof_of(run.ledger, len(seats_of(kernel, machine, launch.blocks)))
        met: set[tuple[int, int]] = set()
        if run.report.findings or not proof.holds(met=met):
            raise ProofError(
                "order", f"{kernel.name} has no proved order on {launch.blocks} cores: {run.report.findings[:1]}"
            )
        count += 1
        begun.add(number)
        if not run.ledger.cut:
            through.add(number)
        groups.add(event.line for event in run.ledger.events if event.line in lines)
        groups.join(met)
        for group in groups.all():
            if needed.isdisjoint(group) and not proof.holds(group):
                needed |= group
        if not any(needed.isdisjoint(group) for group in groups.all()) and groups.seen >= lines.keys():
            break
    found = tuple(Group(lines[min(group)], tuple(sorted(group))) for group in groups.all())
    idle = tuple(group for group in found if needed.isdisjoint(group.lines))
    return Minimality(found, idle, tuple(sorted(lines.keys() - groups.seen)), count, begun != through)


def sync_lines(body: Sequence[Statement]) -> Iterator[tuple[int, str]]:
    """(line, what stands there) of every set, wait and barrier."""
    for statement in body:
        match statement:
            case For(body=inner):
                yield from sync_lines(inner)
            case If(then=then, otherwise=otherwise):
                yield from sync_lines((*then, *otherwise))
            case Call("SetFlag" | "WaitFlag", template):
                yield statement.line, f"flag {template[0].removeprefix('HardEvent::')}"
            case Call("PipeBarrier", template):
                yield statement.line, f"barrier {template[0]}"
            case _:
                pass


class _Components:
    """Lines that belong together."""

    def __init__(self) -> None:
        self._group: dict[int, set[int]] = {}

    @property
    def seen(self) -> frozenset[int]:
        """All lines."""
        return frozenset(self._group)

    def add(self, lines: Iterable[int]) -> None:
        """Each line alone, where it is not known yet."""
        for line in lines:
            self._group.setdefault(line, {line})

    def join(self, pairs: Iterable[tuple[int, int]]) -> None:
        """The lines of a pair belong together."""
        for first, second in sorted(pairs):
            if self._group[first] is not self._group[second]:
                self._group[first] |= self._group[second]
                for line in self._group[second]:
                    self._group[line] = self._group[first]

    def all(self) -> list[set[int]]:
        """The groups by their first lines."""
        return [self._group[line] for line in sorted(self._group) if min(self._group[line]) == line]
