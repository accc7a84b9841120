"""The order proof of a program that is not printed yet: a walk over it (:mod:`walk`) with vector clocks.

The rules are those of :mod:`simulate.order`: a set hands over what its pipe did, a wait takes it, a barrier closes one
pipe, and two accesses to one place, one of them a write, must be ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kernelgen.ascendc.instructions import Call
from kernelgen.ascendc.types import PIPES
from kernelgen.targets.ascend.lower.order.unrolled_walk import (
    SCALAR,
    Access,
    Conflict,
    Fault,
    FlagFault,
    Layout,
    Place,
    Touched,
    Turns,
    Walk,
    ways,
)
from kernelgen.targets.ascend.lower.program.statement_tree import BARRIER, DRAIN, SET, Item, Sync


@dataclass
class Trace(Walk):
    """One variant's run with the flags as they stand, whatever ids they have."""

    settle: Callable[[Conflict], None] | None = None
    settled: int = 0
    known: list[list[int]] = field(default_factory=lambda: [[0] * len(PIPES) for _ in PIPES])
    next: list[int] = field(default_factory=lambda: [0] * len(PIPES))
    flags: dict[tuple[int, int], list[int]] = field(default_factory=dict[tuple[int, int], list[int]])
    own_set: list[int] | None = None

    # flags

    def sync(self, sync: Sync) -> FlagFault | None:
        """A set, wait or barrier."""
        group = sync.group
        if sync.action == DRAIN:
            everything = [max(clock[p] for clock in self.known) for p in range(len(PIPES))]
            everything = [max(a, b) for a, b in zip(everything, self.next, strict=True)]
            self.known = [list(everything) for _ in PIPES]
            return None
        if sync.action == BARRIER:
            self.join(group.target, self.known[SCALAR])
            self.known[group.target][group.target] = self.next[group.target]
            return None
        key = id(group), self.slot_of(sync)
        return self.set(sync, key) if sync.action == SET else self.wait(sync, key)

    def set(self, sync: Sync, key: tuple[int, int]) -> FlagFault | None:
        """The source hands over what it knows and did."""
        source = sync.group.source
        self.join(source, self.known[SCALAR])
        clock = list(self.known[source])
        clock[source] = self.next[source]
        self.next[source] += 1
        if key in self.flags:
            return FlagFault(sync)
        self.flags[key] = clock
        return None

    def wait(self, sync: Sync, key: tuple[int, int]) -> FlagFault | None:
        """The target takes what was handed over."""
        target = sync.group.target
        clock = self.flags.pop(key, None)
        if clock is None:
            return FlagFault(sync)
        self.join(target, self.known[SCALAR])
        self.next[target] += 1
        self.join(target, clock)
        return None

    def join(self, pipe: int, clock: Sequence[int]) -> None:
        """A pipe learns what a clock knows."""
        own = self.known[pipe]
        for at, number in enumerate(clock):
            if number > own[at]:
                own[at] = number

    # instructions

    def cross(self, call: Call, pipe: int) -> None:
        """Cores meet: a set hands over what its pipe did, and where a core meets those of its kind it learns that itself.

        What another core touches later stands for the same instruction of this one: see :meth:`is_over`.
        """
        self.join(pipe, self.known[SCALAR])
        if call.operation == "CrossCoreSetFlag":
            clock = list(self.known[pipe])
            clock[pipe] = self.next[pipe]
            self.handed.append(clock)
            self.own_set = clock if call.template[0] == "0" else None
        elif self.own_set is not None:
            self.join(SCALAR, self.own_set)

    def is_over(self, access: Access, space: str, clock: Sequence[int]) -> bool:
        """Whether an access is known to be over; in GM also by cores that were met since."""
        if access.number >= clock[access.pipe]:
            return False
        met = space in self.layout.tensors and access.era < len(self.handed)
        return not met or access.number < self.handed[access.era][access.pipe]

    def access(self, item: Item, turns: Turns, pipe: int, touched: Sequence[Touched]) -> Conflict | None:
        """Checks what an instruction touches, and notes it; the latest access that is not over is the conflict."""
        self.join(pipe, self.known[SCALAR])
        clock, number = self.known[pipe], self.next[pipe]
        self.next[pipe] += 1
        worst: Access | None = None
        for space, place, write in touched:
            found = self.latest_open(space, place, write, pipe)
            if found is not None and (worst is None or later(found, worst)):
                worst = found
        own = Access(item, turns, pipe, number, len(self.handed))
        self.note(own, touched)
        if worst is None:
            return None
        conflict = Conflict(worst, own)
        if self.settle is None:
            return conflict
        self.settle(conflict)
        self.settled += 1
        self.known[pipe][worst.pipe] = max(clock[worst.pipe], number if worst.pipe == pipe else worst.number + 1)
        return None

    def latest_open(self, space: str, place: Place, write: bool, pipe: int) -> Access | None:
        """The latest access to a place that may not be over; in a table of one pipe the latest comes last."""
        clock = self.known[pipe]
        worst: Access | None = None
        for (source, wrote), table in self.places.get(space, {}).items():
            if not (write or wrote) or not (source or pipe):
                continue
            for other, access in reversed(table.items()):
                if self.is_over(access, space, clock):
                    if self.handed:
                        continue
                    break
                if place.meets(other):
                    worst = access if worst is None or later(access, worst) else worst
                    break
        return worst


def later(first: Access, second: Access) -> bool:
    """The later of one pipe's accesses stands for the others; other pipes come after it."""
    return first.pipe == second.pipe and first.number > second.number


def faults(root: Item, layout: Layout) -> Fault | None:
    """The first fault of any variant."""
    faults = (Trace(layout, way).run(root) for way in ways(root, layout))
    return next((fault for fault in faults if fault is not None), None)
