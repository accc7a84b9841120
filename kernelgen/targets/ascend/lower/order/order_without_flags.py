"""The order proof without some flags, again and again: its runs are written down once, by what must be over before what.

    DataCopyPad(x, ..)      step 0
    Exp(y, x)               step 1: MTE2 must be past step 0
    Add(z, y, x)            step 2: V must be past step 1; that MTE2 is past step 0 is known by then

What an instruction touches does not depend on flags, so a run is written down as its sets, waits and barriers and, for each
instruction, the last step of every pipe that it conflicts with. Going through that takes a small part of the time of a walk
over the program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from kernelgen.ascendc.clocks import NOTHING, SCALAR, Clocks, CoreClock, FlagTable
from kernelgen.ascendc.instructions import Call
from kernelgen.ascendc.types import PIPES
from kernelgen.targets.ascend.lower.order.program_layout import Layout
from kernelgen.targets.ascend.lower.order.touched_places import Place, Touched
from kernelgen.targets.ascend.lower.order.unrolled_walk import Access, Turns, Walk
from kernelgen.targets.ascend.lower.order.walk_variants import ways
from kernelgen.targets.ascend.lower.program.statement_tree import BARRIER, DRAIN, SET, Group, Item, Sync

Key = tuple[Group | int, int, int]


@dataclass(frozen=True, slots=True)
class Need:
    """``pipe`` must be past step ``number`` on this core; in GM also all cores that were met, with ``meeting``'s flag."""

    pipe: int
    number: int
    meeting: int | None = None


@dataclass(frozen=True, slots=True)
class Instruction:
    """What must be over when it starts."""

    pipe: int
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Cross:
    """Cores meet: a pipe sets a flag for the others, or waits for theirs. ``alike`` are the set and wait of its own kind."""

    pipe: int
    sets: bool
    alike: bool


@dataclass(frozen=True, slots=True)
class Flag:
    """A set, wait or barrier, with the slot of its group's ids."""

    sync: Sync
    slot: int


Step = Instruction | Cross | Flag


class Replay:
    """All ways through a program with the flags that it had when this was made, less those dropped; ids may change."""

    def __init__(self, root: Item, layout: Layout) -> None:
        recorders = [_Recorder(layout, way) for way in ways(root, layout)]
        for recorder in recorders:
            recorder.run(root)
        self._dropped: set[Group] = set()
        self._whole = [recorder.steps for recorder in recorders if recorder.way.left_out is None]
        self._parts = [recorder.steps for recorder in recorders if recorder.way.left_out is not None]

    def drop(self, group: Group) -> None:
        """The program goes on without a group."""
        self._dropped.add(group)

    def is_clean(self, without: Group | None = None, with_ids: bool = False) -> bool:
        """Whether the proof holds, without a group; ``with_ids`` asks too that no id is set before its wait is over."""
        absent = self._dropped if without is None else {*self._dropped, without}
        return all(_Run(absent, with_ids).passes(steps) for steps in (*self._whole, *self._parts))

    def needed_barriers(self) -> frozenset[Group]:
        """Barriers of one pipe without which the proof would fail whatever else is taken out."""
        needed: set[Group] = set()
        for steps in self._whole:
            _Run(self._dropped, with_ids=False, needed=needed).passes(steps)
        return frozenset(needed)


@dataclass
class _Recorder(Walk):
    """Writes down the steps. ``asked``: pipe, and what its instructions need -> up to which step they have needed it."""

    steps: list[tuple[int, Step]] = field(default_factory=list[tuple[int, Step]])
    count: int = 0
    asked: dict[tuple[int, int, int | None], int] = field(default_factory=dict[tuple[int, int, "int | None"], int])

    def sync(self, sync: Sync) -> None:
        self.add(Flag(sync, self.slot_of(sync)))

    def access(self, item: Item, turns: Turns, pipe: int, touched: Sequence[Touched]) -> None:
        needs = [need for place in touched for need in self._needs(pipe, *place)]
        fresh: dict[tuple[int, int, int | None], Need] = {}
        for need in sorted(needs, key=lambda one: one.number):
            key = pipe, need.pipe, need.meeting
            if need.number > self.asked.get(key, -1):
                self.asked[key], fresh[key] = need.number, need
        self.note(Access(item, turns, pipe, self.count, len(self.handed)), touched)
        if fresh:
            self.add(Instruction(pipe, tuple(fresh.values())))
        else:
            self.count += 1

    def cross(self, call: Call, pipe: int) -> None:
        sets = call.operation == "CrossCoreSetFlag"
        if sets:
            self.handed.append(NOTHING)
        self.add(Cross(pipe, sets, sets and call.template[0] == "0"))

    def add(self, step: Step) -> None:
        """Writes a step down with its number; those without needs have numbers, too."""
        self.steps.append((self.count, step))
        self.count += 1

    def _needs(self, pipe: int, space: str, touched: Place, write: bool) -> Iterator[Need]:
        """The latest accesses that may not be beside this one; the latest before each meeting where that is in GM."""
        for (source, wrote), table in self.places.get(space, {}).items():
            if not (write or wrote) or source == pipe == SCALAR:
                continue
            open_meetings = len(self.handed) if space in self.layout.tensors else 0
            asked = self.asked.get((pipe, source, None), -1)
            found = False
            for place, access in reversed(table.items()):
                if access.number <= asked and not open_meetings:
                    break
                if (found and access.era >= open_meetings) or not touched.meets(place):
                    continue
                if not found:
                    yield Need(source, access.number)
                    found = True
                if access.era < open_meetings:
                    yield Need(source, access.number, access.era)
                    open_meetings = access.era
                if not open_meetings:
                    break


@dataclass
class _Run:
    """One time through the steps, with vector clocks."""

    absent: Collection[Group]
    with_ids: bool
    needed: set[Group] | None = None
    clocks: Clocks[CoreClock] = field(default_factory=lambda: Clocks(NOTHING))
    flags: FlagTable[Key, CoreClock] = field(default_factory=FlagTable[Key, CoreClock])
    handed: list[CoreClock] = field(default_factory=list[CoreClock])
    own_set: CoreClock | None = None
    closed: dict[int, tuple[Group, int]] = field(default_factory=dict[int, tuple[Group, int]])

    def passes(self, steps: Sequence[tuple[int, Step]]) -> bool:
        """Whether nothing is out of order and no flag is set or waited for wrongly."""
        for number, step in steps:
            if isinstance(step, Flag):
                if step.sync.group not in self.absent and not self._flag(step, number):
                    return False
            elif isinstance(step, Instruction):
                if not self._instruction(step):
                    return False
            else:
                self._cross(step, number)
        return True

    def _instruction(self, step: Instruction) -> bool:
        own = self._informed(step.pipe)
        for need in step.needs:
            clock = own if need.meeting is None else self.handed[need.meeting]
            if need.number >= clock[need.pipe]:
                return False
        if self.needed is not None and step.pipe in self.closed:
            group, before = self.closed[step.pipe]
            if any(need.pipe == step.pipe and need.number >= before for need in step.needs):
                self.needed.add(group)
        return True

    def _flag(self, step: Flag, number: int) -> bool:
        group = step.sync.group
        if step.sync.action == DRAIN:
            for pipe in range(len(PIPES)):
                self.clocks.reach(pipe, number)
            self.clocks.close_all()
            self.closed.clear()
            return True
        if step.sync.action == BARRIER:
            self.closed[group.target] = group, self._informed(group.target)[group.target]
            self.clocks.reach(group.target, number)
            self.clocks.close(group.target)
            return True
        free = group.identity < 0
        key = (group, step.slot, -1) if free else (group.source, group.target, group.identity + step.slot)
        return self._set(key, group, number) if step.sync.action == SET else self._wait(key, group, number)

    def _set(self, key: Key, group: Group, number: int) -> bool:
        self._informed(group.source)
        self.clocks.reach(group.source, number)
        clock = self.clocks.released(group.source)
        in_time = not self.with_ids or group.identity < 0 or self.flags.is_free(key, group.target, clock)
        return self.flags.set(key, clock) and in_time

    def _wait(self, key: Key, group: Group, number: int) -> bool:
        clock = self.flags.take(key)
        if clock is None:
            return False
        self._informed(group.target)
        self.flags.waited(key, number)
        self._join(group.target, clock)
        return True

    def _cross(self, step: Cross, number: int) -> None:
        self._informed(step.pipe)
        if step.sets:
            self.clocks.reach(step.pipe, number)
            clock = self.clocks.released(step.pipe)
            self.handed.append(clock)
            self.own_set = clock if step.alike else None
        elif self.own_set is not None:
            self._join(SCALAR, self.own_set)

    def _informed(self, pipe: int) -> CoreClock:
        """What a pipe knows: all that the scalar unit knew when it issued the step, too."""
        return self._join(pipe, self.clocks.scalar)

    def _join(self, pipe: int, clock: CoreClock) -> CoreClock:
        if pipe in self.closed and clock[pipe] > self.closed[pipe][1]:
            self.closed[pipe] = self.closed[pipe][0], clock[pipe]
        return self.clocks.join(pipe, clock)
