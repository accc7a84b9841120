"""The order proof of a program that is not printed yet: a walk over it (:mod:`unrolled_walk`) with vector clocks.

The rules of flags and barriers are those of :mod:`kernelgen.ascendc.clocks`; two accesses to one place, one of them a write,
must be ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kernelgen.ascendc.clocks import NOTHING, SCALAR, Clocks, CoreClock, FlagTable
from kernelgen.ascendc.instructions import Call
from kernelgen.targets.ascend.lower.order.program_layout import Layout
from kernelgen.targets.ascend.lower.order.touched_places import Place, Touched
from kernelgen.targets.ascend.lower.order.unrolled_walk import Access, Conflict, Fault, FlagFault, Turns, Walk
from kernelgen.targets.ascend.lower.order.walk_variants import ways
from kernelgen.targets.ascend.lower.program import statement_tree
from kernelgen.targets.ascend.lower.program.statement_tree import Group, Item, Sync


@dataclass
class Trace(Walk):
    """One variant's run with the flags as they stand, whatever ids they have."""

    settle: Callable[[Conflict], None] | None = None
    settled: int = 0
    clocks: Clocks[CoreClock] = field(default_factory=lambda: Clocks(NOTHING))
    flags: FlagTable[tuple[Group, int], CoreClock] = field(default_factory=FlagTable[tuple[Group, int], CoreClock])
    own_set: CoreClock | None = None

    # flags

    def sync(self, sync: Sync) -> FlagFault | None:
        """A set, wait or barrier."""
        clocks, group = self.clocks, sync.group
        match sync.action:
            case statement_tree.DRAIN:
                clocks.close_all()
            case statement_tree.BARRIER:
                clocks.issue(group.target)
                clocks.close(group.target)
            case statement_tree.SET:
                clocks.issue(group.source)
                handed = clocks.released(group.source)
                clocks.step(group.source)
                if not self.flags.set((group, self.slot_of(sync)), handed):
                    return FlagFault(sync)
            case _:
                handed = self.flags.take((group, self.slot_of(sync)))
                if handed is None:
                    return FlagFault(sync)
                clocks.issue(group.target)
                clocks.step(group.target)
                clocks.join(group.target, handed)
        return None

    # instructions

    def cross(self, call: Call, pipe: int) -> None:
        """Cores meet: a set hands over what its pipe did, and where a core meets those of its kind it learns that itself.

        What another core touches later stands for the same instruction of this one: see :meth:`is_over`.
        """
        self.clocks.issue(pipe)
        if call.operation == "CrossCoreSetFlag":
            clock = self.clocks.released(pipe)
            self.handed.append(clock)
            self.own_set = clock if call.template[0] == "0" else None
        elif self.own_set is not None:
            self.clocks.join(SCALAR, self.own_set)

    def is_over(self, access: Access, space: str, clock: Sequence[int]) -> bool:
        """Whether an access is known to be over; in GM also by cores that were met since."""
        if access.number >= clock[access.pipe]:
            return False
        met = space in self.layout.tensors and access.era < len(self.handed)
        return not met or access.number < self.handed[access.era][access.pipe]

    def access(self, item: Item, turns: Turns, pipe: int, touched: Sequence[Touched]) -> Conflict | None:
        """Checks what an instruction touches, and notes it; the latest access that is not over is the conflict."""
        self.clocks.issue(pipe)
        number = self.clocks.step(pipe)
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
        self.clocks.join(pipe, NOTHING.past(worst.pipe, number if worst.pipe == pipe else worst.number + 1))
        return None

    def latest_open(self, space: str, place: Place, write: bool, pipe: int) -> Access | None:
        """The latest access to a place that may not be over; in a table of one pipe the latest comes last."""
        clock = self.clocks.of(pipe)
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
