"""Synchronisation: the flags and barriers that order every pair of accesses to one place, and no others.

    DataCopyPad(x, ..)                      WaitFlag<V_MTE2>(0)                  set before the loop, waited for behind it
    Exp(y, x)                               DataCopyPad(x, ..)
                                ->          SetFlag<MTE2_V>(0); WaitFlag<MTE2_V>(0)
                                            Exp(y, x)
                                            SetFlag<V_MTE2>(0)

The order proof (:mod:`trace`) names a pair that nothing orders; a flag or barrier is put between them where both stand in
one block, over as many pairs of the same pipes as it can serve; again, until the proof is clean. Then everything that the
proof does without is taken out, and ids are given, each the smallest that keeps the proof clean. Where ids run out, a
barrier of all pipes stands in for the flag, as in AKG's sync injection. Parts that a core runs one after the other (loops
that are dealt to the cores) are settled each for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.instructions import Statement
from kernelgen.ascendc.types import EVENTS, PIPES
from kernelgen.machines.ascend.description import Machine
from kernelgen.targets.ascend.lower.order.order_proof import Trace, faults
from kernelgen.targets.ascend.lower.order.order_without_flags import Replay
from kernelgen.targets.ascend.lower.order.program_layout import Layout
from kernelgen.targets.ascend.lower.order.unrolled_walk import Conflict, FlagFault
from kernelgen.targets.ascend.lower.order.walk_variants import Way
from kernelgen.targets.ascend.lower.program.statement_tree import (
    BARRIER,
    DRAIN,
    SET,
    WAIT,
    Group,
    Item,
    Sync,
    adopt,
    grow,
    harvest,
    insert,
    remove,
)
from kernelgen.targets.ascend.lower.program.storage import parts_of

MOST_STEPS = 2000


def synchronise(body: tuple[Statement, ...], layout: Layout, machine: Machine) -> tuple[Statement, ...]:
    """The statements with flags and barriers. Parts of the kernel share tiles and ids: a barrier of all pipes is between.

    Raises AscendError where the order cannot be settled.
    """
    whole = Item(None)
    barriers: list[Group] = []
    for number, (meeting, part) in enumerate(parts_of(body)):
        root = grow(part)
        work = _Synchronisation(root, layout, machine)
        replay = work.order()
        _drop_idle(replay, work.groups)
        work.give_ids(replay)
        if number:
            barriers.append(Group(DRAIN, 0, 0))
            insert(whole, len(whole.items), Sync(barriers[-1], DRAIN))
        adopt(whole, grow(meeting))
        adopt(whole, root)
    if barriers:
        _drop_idle(Replay(whole, layout), barriers, with_ids=True)
    return harvest(whole)


def _drop_idle(replay: Replay, groups: list[Group], with_ids: bool = False) -> None:
    """Takes out what the proof does without, the latest first."""
    needed = replay.needed_barriers()
    for group in reversed([group for group in groups if group not in needed]):
        if replay.is_clean(group, with_ids):
            replay.drop(group)
            remove(group)
            groups.remove(group)


@dataclass
class _Synchronisation:
    root: Item
    layout: Layout
    machine: Machine
    groups: list[Group] = field(default_factory=list[Group])

    def order(self) -> Replay:
        """Flags and barriers until nothing is left unordered: the proof of that."""
        for _ in range(MOST_STEPS):
            trace = Trace(self.layout, Way(), settle=self.settle)
            fault = trace.run(self.root)
            if isinstance(fault, FlagFault) and not trace.settled:
                self.drain(fault.sync.group)
            elif not trace.settled:  # else a flag came in whose first set this run has passed: once more
                replay = Replay(self.root, self.layout)
                if replay.is_clean():
                    return replay
                fault = faults(self.root, self.layout)
                if isinstance(fault, Conflict):
                    self.settle(fault)
                elif fault is not None:
                    self.drain(fault.sync.group)
        raise AscendError("the order of the pipes cannot be settled")

    def settle(self, conflict: Conflict) -> None:
        """Orders one pair."""
        first, second = conflict.first, conflict.second
        loop, distance = _carrier(conflict)
        inner = None if loop is None else self.doubled(conflict)
        if inner is not None:
            loop, distance = inner, 2
        home, source, target = _home(first.item, second.item, loop)
        before = home.items.index(source) < home.items.index(target)
        if first.pipe == second.pipe:
            group = Group(BARRIER, first.pipe, second.pipe)
            insert(home, home.items.index(target), Sync(group, BARRIER))
            self.groups.append(group)
            return
        if f"{PIPES[first.pipe]}_{PIPES[second.pipe]}" not in EVENTS:
            self.drained(home, target)
            return
        if before:
            self.forward(home, source, target, first.pipe, second.pipe)
        else:
            self.backward(home, source, target, (first.pipe, second.pipe), distance)

    def doubled(self, conflict: Conflict) -> Item | None:
        """The innermost loop around a pair where that has two copies of its tiles, and no flag yet that orders the pair.

        A flag of that loop's turns orders the pair in turns of outer loops, too.
        """
        first, second = conflict.first, conflict.second
        around = second.item.ancestors()
        home = next((item for item in first.item.ancestors()[1:] if item in around and item.loop is not None), None)
        if home is None or first.pipe == second.pipe or not home.parity:
            return None
        _, source, target = _home(first.item, second.item, home)
        if home.items.index(source) <= home.items.index(target):
            return None
        pipes = first.pipe, second.pipe
        taken = any(
            _is_backward(group, home) and _surrounds(group, home, source, target, pipes) for group in self.groups
        )
        return None if taken else home

    def drained(self, home: Item, target: Item) -> None:
        group = Group(DRAIN, 0, 0)
        insert(home, home.items.index(target), Sync(group, DRAIN))
        self.groups.append(group)

    def forward(self, home: Item, source: Item, target: Item, first: int, second: int) -> None:
        """A set behind the source, a wait before the target."""
        half = home.parity
        for group in self.groups:
            setter, waiter = _ends(group, home, first, second)
            if setter is None or waiter is None or _is_backward(group, home):
                continue
            if home.items.index(setter) < home.items.index(source) < home.items.index(waiter):
                _move(setter, home, home.items.index(source) + 1)
                return
        group = Group(SET, first, second, half)
        slot = None if half else 0
        insert(home, home.items.index(target), Sync(group, WAIT, slot))
        insert(home, home.items.index(source) + 1, Sync(group, SET, slot))
        self.groups.append(group)

    def backward(self, home: Item, source: Item, target: Item, pipes: tuple[int, int], distance: int) -> None:
        """A wait before the target, a set behind the source, for the next turn; the first set stands before all loops."""
        half = home.parity if distance > 1 else ""
        for group in self.groups:
            setter, waiter = _ends(group, home, *pipes)
            if setter is None or waiter is None or not _is_backward(group, home) or group.half != half:
                continue
            if home.items.index(source) > home.items.index(setter):
                _move(setter, home, home.items.index(source) + 1)
            if home.items.index(target) < home.items.index(waiter):
                _move(waiter, home, home.items.index(target))
            return
        group = Group(SET, *pipes, half)
        slot = None if half else 0
        insert(home, home.items.index(target), Sync(group, WAIT, slot))
        insert(home, home.items.index(source) + 1, Sync(group, SET, slot))
        outer = next(item for item in reversed(home.ancestors()) if item.loop is not None)
        around = outer.parent
        if around is None:
            raise AscendError("a loop without a block")
        for one in (0, 1) if half else (0,):
            insert(around, around.items.index(outer), Sync(group, SET, one))
            insert(around, around.items.index(outer) + 1, Sync(group, WAIT, one))
        self.groups.append(group)

    def drain(self, group: Group) -> None:
        """A flag that cannot be is replaced by barriers of all pipes wherever it was waited for.

        Each orders what the wait did. Those behind the loops come last, and are the first to go where nothing needs them.
        """
        waits = [item for item in group.items if item.sync is not None and item.sync.action == WAIT]
        inner = next((item for item in waits if item.sync is not None and item.sync.slot is None), waits[0])
        standing = {item: Group(DRAIN, 0, 0) for item in (inner, *(item for item in waits if item is not inner))}
        for item, other in standing.items():
            if item.parent is None:
                raise AscendError("a wait without a block")
            insert(item.parent, item.parent.items.index(item), Sync(other, DRAIN))
        remove(group)
        self.groups[self.groups.index(group)] = standing.pop(inner)
        self.groups.extend(standing.values())

    def give_ids(self, replay: Replay) -> None:
        """The smallest ids that keep the proof clean. A barrier that stands in for a flag may make others idle."""
        free = [k for k in range(self.machine.event_ids) if k not in self.machine.reserved_ids]
        without_id = False
        for group in [one for one in self.groups if one.kind == SET]:
            if not any(_fits(replay, group, identity) for identity in _candidates(free, 2 if group.half else 1)):
                group.identity = -1
                self.drain(group)
                replay = Replay(self.root, self.layout)
                without_id = True
        if not replay.is_clean(with_ids=True):
            raise AscendError("the flags do not order the kernel")
        if without_id:
            _drop_idle(replay, self.groups, with_ids=True)


def _fits(replay: Replay, group: Group, identity: int) -> bool:
    """Whether a group may have an id beside those that are given."""
    group.identity = identity
    return replay.is_clean(with_ids=True)


def _candidates(free: list[int], width: int) -> Iterator[int]:
    return (k for k in free[::width] if all(k + more in free for more in range(width)))


def _carrier(conflict: Conflict) -> tuple[Item | None, int]:
    """The outermost loop of whose turns the pair lies in different ones, and how many turns are between."""
    for (loop, first), (other, second) in zip(conflict.first.turns, conflict.second.turns, strict=False):
        if loop is not other:
            break
        if first != second:
            return loop, second - first
    return None, 0


def _home(first: Item, second: Item, loop: Item | None) -> tuple[Item, Item, Item]:
    """The block that holds both, and what of it holds each."""
    up, down = first.ancestors(), second.ancestors()
    home = loop if loop is not None else next(item for item in up[1:] if item in down)
    source = next(item for item in up if item.parent is home)
    target = next(item for item in down if item.parent is home)
    return home, source, target


def _ends(group: Group, home: Item, source: int, target: int) -> tuple[Item | None, Item | None]:
    """The set and the wait of a flag that stand in a block."""
    if group.kind != SET or (group.source, group.target) != (source, target):
        return None, None
    here = [item for item in group.items if item.parent is home and item.sync is not None]
    setter = next((item for item in here if item.sync is not None and item.sync.action == SET), None)
    waiter = next((item for item in here if item.sync is not None and item.sync.action == WAIT), None)
    return setter, waiter


def _surrounds(group: Group, home: Item, source: Item, target: Item, pipes: tuple[int, int]) -> bool:
    """Whether a flag of these pipes is set behind the source and waited for before the target."""
    setter, waiter = _ends(group, home, *pipes)
    if setter is None or waiter is None:
        return False
    places = [home.items.index(item) for item in (waiter, target, source, setter)]
    return places == sorted(places)


def _is_backward(group: Group, home: Item) -> bool:
    """Whether a flag is set for the next turn."""
    setter, waiter = _ends(group, home, group.source, group.target)
    return setter is not None and waiter is not None and home.items.index(waiter) < home.items.index(setter)


def _move(item: Item, home: Item, position: int) -> None:
    at = home.items.index(item)
    home.items.pop(at)
    home.items.insert(position - (at < position), item)
