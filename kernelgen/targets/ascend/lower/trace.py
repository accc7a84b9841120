"""The order proof of a program that is not printed yet: a few turns of every loop, with vector clocks.

The rules are those of :mod:`simulate.order`: a set hands over what its pipe did, a wait takes it, a barrier closes one
pipe, and two accesses to one place, one of them a write, must be ordered. Loops run one or two turns, up to four where
tiles have two copies: what a turn leaves to the next but one is the same for all later ones. Branches and loops that may
be empty run in some variants and not in others. Sizes that are not known have the values of :data:`SAMPLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kernelgen.targets.ascend.expressions import Expression, Number
from kernelgen.targets.ascend.instructions import (
    Call,
    For,
    GlobalTensor,
    If,
    Let,
    Statement,
    Struct,
)
from kernelgen.targets.ascend.lower.double_buffer import HALF, may_repeat
from kernelgen.targets.ascend.lower.tree import BARRIER, DRAIN, SET, Item, Sync
from kernelgen.targets.ascend.lower.uses import Use, uses_of
from kernelgen.targets.ascend.lower.writer import Tile
from kernelgen.targets.ascend.pipes import pipe_of
from kernelgen.targets.ascend.simulate.scalars import BadScalar, Scope
from kernelgen.targets.ascend.types import GM, PIPES, UB

SAMPLE = (32771, 32779, 32783, 32789, 32797, 32801)
TURNS = {"all": 4, "three": 3, "two": 2, "one": 1, "none": 4, "outer": 4}
"""Variant -> the turns of a loop at most."""
ALL_TAKEN, OUTER_TAKEN = "all", "outer"
SCALAR = PIPES.index("S")
Turns = tuple[tuple[Item, int], ...]


@dataclass(frozen=True)
class Place:
    """Bytes ``low`` to ``high``, of each ``step`` only the first ``length`` where a step is given."""

    low: int
    high: int
    step: int = 0
    length: int = 0

    def meets(self, other: Place) -> bool:
        """Whether two places share a byte."""
        if self.high <= other.low or other.high <= self.low:
            return False
        if self.step and self.step == other.step:
            apart = (other.low - self.low) % self.step
            return apart < self.length or self.step - apart < other.length
        return True


@dataclass(frozen=True)
class Access:
    """One access of an instruction of a pipe."""

    item: Item
    turns: Turns
    pipe: int
    number: int
    write: bool


@dataclass(frozen=True)
class Conflict:
    """``first`` may not be over when ``second`` starts."""

    first: Access
    second: Access


@dataclass(frozen=True)
class FlagFault:
    """A flag that is set twice, waited for in vain, or set again too early."""

    sync: Sync


@dataclass(frozen=True)
class Layout:
    """Where tensors lie: tiles by byte address, others in GM; ``mixed`` buffers count as one place."""

    tiles: Mapping[str, Tile]
    addresses: Mapping[str, int]
    tensors: Mapping[str, GlobalTensor]
    fields: Mapping[str, int]
    mixed: frozenset[str] = frozenset()

    @cached_property
    def overlaps(self) -> Mapping[str, tuple[str, ...]]:
        """For each tile with memory of its own those that share a byte with it, itself too."""
        spans = {
            name: (low, low + self.tiles[name].size * self.tiles[name].copies) for name, low in self.addresses.items()
        }
        return {
            name: tuple(other for other, (a, b) in spans.items() if a < high and low < b)
            for name, (low, high) in spans.items()
        }

    def memory_of(self, name: str) -> str:
        """The memory of a tensor."""
        return UB if name in self.tiles else GM


@dataclass
class Trace:
    """One variant's run."""

    layout: Layout
    variant: str
    with_ids: bool
    settle: Callable[[Conflict], None] | None = None
    settled: int = 0
    values: dict[str, int | float] = field(default_factory=lambda: {"GetBlockIdx": 0, "GetBlockNum": 1})
    known: list[list[int]] = field(default_factory=lambda: [[0] * len(PIPES) for _ in PIPES])
    next: list[int] = field(default_factory=lambda: [0] * len(PIPES))
    flags: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)
    waited: dict[tuple[int, int, int], int] = field(default_factory=dict)
    places: dict[str, dict[tuple[Place, int, bool], Access]] = field(default_factory=dict)

    def run(self, root: Item) -> Conflict | FlagFault | None:
        """The first fault."""
        return self.block(root, (), 0)

    def block(self, parent: Item, turns: Turns, depth: int) -> Conflict | FlagFault | None:
        """The items of a block in order; those that are settled in the meantime count from the next turn on."""
        for item in tuple(parent.items):
            fault = self.item(item, turns, depth)
            if fault is not None:
                return fault
        return None

    def item(self, item: Item, turns: Turns, depth: int) -> Conflict | FlagFault | None:
        """One item."""
        if item.sync is not None:
            return self.sync(item.sync)
        match item.statement:
            case For() as loop:
                return self.loop(item, loop, turns, depth)
            case If():
                return self.block(item, turns, depth + 1) if self.taken(depth) else None
            case Statement() as statement:
                return self.statement(item, statement, turns)
            case _:
                return None

    def taken(self, depth: int) -> bool:
        """Whether what may be left out is done."""
        return self.variant not in ("none", OUTER_TAKEN) or (self.variant == OUTER_TAKEN and depth == 0)

    def loop(self, item: Item, loop: For, turns: Turns, depth: int) -> Conflict | FlagFault | None:
        """Some turns of a loop."""
        sure = isinstance(loop.stop, Number) and isinstance(loop.start, Number)
        if not sure and not self.taken(depth):
            return None
        start, step = self.number(loop.start) or 0, self.number(loop.step) or 1
        stop = self.number(loop.stop)
        doubled = any(
            isinstance(one.statement, Let) and one.statement.name == f"{HALF}{loop.variable}" for one in item.items
        )
        limit = 1 if not may_repeat(loop) else min(TURNS[self.variant], 4 if doubled else 2)
        for turn in range(limit):
            if stop is not None and start + turn * step >= stop:
                break
            self.values[loop.variable] = start + turn * step
            fault = self.block(item, (*turns, (item, turn)), depth + 1)
            if fault is not None:
                return fault
        return None

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
        slot = int(self.values[group.half]) if sync.slot is None else sync.slot
        key = (group.source, group.target, group.identity + slot) if group.identity >= 0 else (id(group), slot, -1)
        return self.set(sync, key) if sync.action == SET else self.wait(sync, key)

    def set(self, sync: Sync, key: tuple[int, int, int]) -> FlagFault | None:
        """The source hands over what it knows and did."""
        source, target = sync.group.source, sync.group.target
        self.join(source, self.known[SCALAR])
        clock = list(self.known[source])
        clock[source] = self.next[source]
        last = None if target == SCALAR else self.waited.get(key)
        self.next[source] += 1
        if key in self.flags:
            return FlagFault(sync)
        self.flags[key] = clock
        if self.with_ids and key[2] >= 0 and last is not None and clock[target] <= last:
            return FlagFault(sync)
        return None

    def wait(self, sync: Sync, key: tuple[int, int, int]) -> FlagFault | None:
        """The target takes what was handed over."""
        target = sync.group.target
        clock = self.flags.pop(key, None)
        if clock is None:
            return FlagFault(sync)
        self.join(target, self.known[SCALAR])
        self.waited[key] = self.next[target]
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

    def statement(self, item: Item, statement: Statement, turns: Turns) -> Conflict | None:
        """An instruction, or a scalar that gets its value."""
        if item.uses is None:
            called = isinstance(statement, Call)
            item.pipe = PIPES.index(pipe_of(statement, self.layout.memory_of)) if called else SCALAR
            item.uses = tuple(uses_of(statement))
        conflict = self.access(item, turns, item.pipe, list(self.touched(statement, item.uses)))
        if isinstance(statement, Let):
            value = self.number(statement.value)
            if value is None:
                self.values.pop(statement.name, None)
            else:
                self.values[statement.name] = value
        return conflict

    def access(
        self, item: Item, turns: Turns, pipe: int, touched: Sequence[tuple[str, Place, bool]]
    ) -> Conflict | None:
        """Checks what an instruction touches, and notes it; the latest access that is not over is the conflict."""
        self.join(pipe, self.known[SCALAR])
        clock, number = self.known[pipe], self.next[pipe]
        self.next[pipe] += 1
        worst: Access | None = None
        for space, place, write in touched:
            for near in self.layout.overlaps.get(space, (space,)):
                for (other, source, wrote), access in self.places.get(near, {}).items():
                    if not (write or wrote) or access.number < clock[source] or not (source or pipe):
                        continue
                    if place.meets(other) and (worst is None or later(access, worst)):
                        worst = access
        for space, place, write in touched:
            self.places.setdefault(space, {})[place, pipe, write] = Access(item, turns, pipe, number, write)
        if worst is None:
            return None
        conflict = Conflict(worst, Access(item, turns, pipe, number, write=True))
        if self.settle is None:
            return conflict
        self.settle(conflict)
        self.settled += 1
        self.known[pipe][worst.pipe] = max(clock[worst.pipe], number if worst.pipe == pipe else worst.number + 1)
        return None

    def touched(self, statement: Statement, uses: Sequence[Use]) -> Iterator[tuple[str, Place, bool]]:
        """(memory or buffer, bytes, written) of a statement."""
        for use in uses:
            if use.tensor in self.layout.tiles:
                tile = self.layout.tiles[use.tensor]
                yield tile.alias or tile.name, self.tile_place(use), use.write
            else:
                yield use.tensor, self.global_place(statement, use), use.write

    def tile_place(self, use: Use) -> Place:
        """One copy of a tile: parts of it are not told apart."""
        tile = self.layout.tiles[use.tensor]
        base = self.layout.tiles[tile.alias] if tile.alias else tile
        low = self.layout.addresses[base.name]
        if base.copies > 1:
            offset = self.number(use.offset) or 0
            low += offset * tile.dtype.itemsize // base.size * base.size
        return Place(low, low + base.size)

    def global_place(self, statement: Statement, use: Use) -> Place:
        """The bytes of a copy; all of the buffer where data decides or its accesses are of several forms."""
        start = self.number(use.offset)
        if start is None or use.tensor in self.layout.mixed or not isinstance(statement, Call):
            return Place(0, 1 << 62)
        item = self.layout.tensors[use.tensor].dtype.itemsize
        sizes = next((a for a in statement.arguments if isinstance(a, Struct)), None)
        if sizes is None:
            return Place(0, 1 << 62)
        values = [self.number(v) if isinstance(v, Expression) else None for v in sizes.values[:4]]
        if any(v is None for v in values):
            return Place(0, 1 << 62)
        count, length, source_gap, target_gap = (int(v or 0) for v in values)
        gap = target_gap if use.write else source_gap
        low = start * item
        high = low + (count - 1) * (length + gap) + length
        return Place(low, high, length + gap if count > 1 else 0, length)

    def number(self, expression: Expression) -> int | None:
        """The value of an integer expression, None where data or a lost name decides it."""
        try:
            value = Scope(self.values, self.layout.fields, _unknown).value(expression)
        except BadScalar:
            return None
        return int(value) if isinstance(value, int) else None


def later(first: Access, second: Access) -> bool:
    """The later of one pipe's accesses stands for the others; other pipes come after it."""
    return first.pipe == second.pipe and first.number > second.number


def _unknown(tensor: str, index: int) -> int:
    raise BadScalar(f"{tensor}[{index}] is data")


def faults(root: Item, layout: Layout, with_ids: bool = False) -> Conflict | FlagFault | None:
    """The first fault of any variant."""
    for variant in TURNS:
        fault = Trace(layout, variant, with_ids).run(root)
        if fault is not None:
            return fault
    return None


def mixed_buffers(root: Sequence[Statement], tensors: Sequence[str]) -> frozenset[str]:
    """Buffers that are read and written at offsets that are not written alike: too much to tell apart."""
    reads: dict[str, set[Expression]] = {}
    writes: dict[str, set[Expression]] = {}
    for use in _all_uses(root):
        if use.tensor in tensors:
            (writes if use.write else reads).setdefault(use.tensor, set()).add(use.offset)
    return frozenset(
        name
        for name in tensors
        if name in reads and name in writes and reads[name] | writes[name] != reads[name] & writes[name]
    )


def _all_uses(body: Sequence[Statement]) -> Iterator[Use]:
    for statement in body:
        match statement:
            case For(body=inner):
                yield from _all_uses(inner)
            case If(then=then):
                yield from _all_uses(then)
            case _:
                yield from uses_of(statement)
