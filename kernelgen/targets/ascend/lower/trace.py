"""The order proof of a program that is not printed yet: a few turns of every loop, with vector clocks.

The rules are those of :mod:`simulate.order`: a set hands over what its pipe did, a wait takes it, a barrier closes one
pipe, and two accesses to one place, one of them a write, must be ordered. Loops run one or two turns, up to four where
tiles have two copies: what a turn leaves to the next but one is the same for all later ones. Branches and loops that may
be empty run in some variants and not in others. Sizes that are not known have the values of :data:`SAMPLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernelgen.targets.ascend.expressions import Expression
from kernelgen.targets.ascend.instructions import (
    Call,
    For,
    GlobalTensor,
    If,
    Let,
    Statement,
    Struct,
)
from kernelgen.targets.ascend.lower.cube.reach import SHARES, Reach, fills_up, reach_of, share_of
from kernelgen.targets.ascend.lower.double_buffer import HALF
from kernelgen.targets.ascend.lower.tree import BARRIER, DRAIN, SET, Group, Item, Sync, leaves
from kernelgen.targets.ascend.lower.uses import Use, uses_of
from kernelgen.targets.ascend.lower.writer import Tile
from kernelgen.targets.ascend.lower.written_out import Decided, decided_by_block, mixed_buffers, sure_loops, turns_of
from kernelgen.targets.ascend.pipes import pipe_of
from kernelgen.targets.ascend.simulate.scalars import BadScalar, Scope
from kernelgen.targets.ascend.types import BLOCK, GM, PIPES

SAMPLE = (32771, 32779, 32783, 32789, 32797, 32801)
TURNS = {"all": 4, "three": 3, "two": 2, "one": 1, "none": 4, "outer": 4}
"""Variant -> the turns of a loop at most."""
ALL_TAKEN, NONE_TAKEN, OUTER_TAKEN = "all", "none", "outer"
MOST_BLOCKS = 64
"""More than a machine has cores."""
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
    era: int = 0


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
    """Where tensors lie: tiles by byte address, others in GM; ``mixed`` buffers count as one place.

    ``sure`` names the variables of loops that have a turn at least. ``exact`` are loops and branches that the block's
    index decides, ``blocks`` the indices between which they differ.
    """

    tiles: Mapping[str, Tile]
    addresses: Mapping[str, int]
    tensors: Mapping[str, GlobalTensor]
    fields: Mapping[str, int]
    mixed: frozenset[str] = frozenset()
    sure: frozenset[str] = frozenset()
    exact: frozenset[Decided] = frozenset()
    blocks: tuple[int, ...] = (0,)

    def memory_of(self, name: str) -> str:
        """The memory of a tensor."""
        return self.tiles[name].memory if name in self.tiles else GM


@dataclass
class Trace:
    """One variant's run."""

    layout: Layout
    variant: str
    with_ids: bool
    settle: Callable[[Conflict], None] | None = None
    left_out: Item | None = None
    settled: int = 0
    values: dict[str, int | float] = field(default_factory=lambda: {"GetBlockIdx": 0, "GetBlockNum": 1})
    known: list[list[int]] = field(default_factory=lambda: [[0] * len(PIPES) for _ in PIPES])
    next: list[int] = field(default_factory=lambda: [0] * len(PIPES))
    flags: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)
    waited: dict[tuple[int, int, int], int] = field(default_factory=dict)
    places: dict[str, dict[tuple[int, bool], dict[Place, Access]]] = field(default_factory=dict)
    handed: list[list[int]] = field(default_factory=list[list[int]])
    own_set: list[int] | None = None
    needed: set[int] | None = None
    closed: dict[int, tuple[Group, int]] = field(default_factory=dict[int, tuple[Group, int]])

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
        if item is self.left_out:
            return None
        match item.statement:
            case For() as loop:
                return self.loop(item, loop, turns, depth)
            case If():
                return self.block(item, turns, depth + 1) if self.enters(item.statement, depth) else None
            case Statement() as statement:
                return self.statement(item, statement, turns)
            case _:
                return None

    def enters(self, branch: If, depth: int) -> bool:
        """Whether a branch is done."""
        return bool(self.number(branch.condition)) if branch.condition in self.layout.exact else self.taken(depth)

    def taken(self, depth: int) -> bool:
        """Whether what may be left out is done."""
        return self.variant not in (NONE_TAKEN, OUTER_TAKEN) or (self.variant == OUTER_TAKEN and depth == 0)

    def loop(self, item: Item, loop: For, turns: Turns, depth: int) -> Conflict | FlagFault | None:
        """Some turns of a loop."""
        exact = loop.variable in self.layout.exact
        if not exact and loop.variable not in self.layout.sure and not self.taken(depth):
            return None
        start, step = self.number(loop.start) or 0, self.number(loop.step) or 1
        stop = self.number(loop.stop)
        doubled = any(
            isinstance(one.statement, Let) and one.statement.name == f"{HALF}{loop.variable}" for one in item.items
        )
        for turn in range(self.turns(loop, doubled)):
            if stop is not None and start + turn * step >= stop:
                break
            self.values[loop.variable] = start + turn * step
            fault = self.block(item, (*turns, (item, turn)), depth + 1)
            if fault is not None:
                return fault
        return None

    def turns(self, loop: For, doubled: bool) -> int:
        """The turns of a loop that are looked at: all or an equal number modulo 2 where it is known how many there are."""
        most = 4 if doubled else 2
        known = turns_of(loop)
        if known is None and loop.variable in self.layout.exact:
            start, stop, step = (self.number(one) or 0 for one in (loop.start, loop.stop, loop.step))
            known = max(0, -(-(stop - start) // max(step, 1)))
        if known is None:
            return min(TURNS[self.variant], most)
        return known if known <= most else most - (known % 2 if doubled else 0)

    # flags

    def sync(self, sync: Sync) -> FlagFault | None:
        """A set, wait or barrier."""
        group = sync.group
        if sync.action == DRAIN:
            everything = [max(clock[p] for clock in self.known) for p in range(len(PIPES))]
            everything = [max(a, b) for a, b in zip(everything, self.next, strict=True)]
            self.known = [list(everything) for _ in PIPES]
            self.closed.clear()
            return None
        if sync.action == BARRIER:
            self.join(group.target, self.known[SCALAR])
            self.closed[group.target] = group, self.known[group.target][group.target]
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
        if pipe in self.closed and clock[pipe] > self.closed[pipe][1]:
            self.closed[pipe] = self.closed[pipe][0], clock[pipe]

    # instructions

    def statement(self, item: Item, statement: Statement, turns: Turns) -> Conflict | None:
        """An instruction, or a scalar that gets its value."""
        if item.uses is None:
            called = isinstance(statement, Call)
            item.pipe = PIPES.index(pipe_of(statement, self.layout.memory_of)) if called else SCALAR
            item.uses = tuple(uses_of(statement))
        if isinstance(statement, Call) and statement.operation.startswith("CrossCore"):
            self.cross(statement, item.pipe)
            return None
        conflict = self.access(item, turns, item.pipe, list(self.touched(statement, item.uses)))
        if isinstance(statement, Let):
            value = self.number(statement.value)
            if value is None:
                self.values.pop(statement.name, None)
            else:
                self.values[statement.name] = value
        return conflict

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

    def access(
        self, item: Item, turns: Turns, pipe: int, touched: Sequence[tuple[str, Place, bool]]
    ) -> Conflict | None:
        """Checks what an instruction touches, and notes it; the latest access that is not over is the conflict."""
        self.join(pipe, self.known[SCALAR])
        clock, number = self.known[pipe], self.next[pipe]
        self.next[pipe] += 1
        worst: Access | None = None
        for space, place, write in touched:
            found = self.latest_open(space, place, write, pipe)
            if found is not None and (worst is None or later(found, worst)):
                worst = found
        if self.needed is not None and worst is None and pipe in self.closed:
            self.note_need(self.needed, pipe, touched)
        for space, place, write in touched:
            table = self.places.setdefault(space, {}).setdefault((pipe, write), {})
            table.pop(place, None)
            table[place] = Access(item, turns, pipe, number, write, len(self.handed))
        if worst is None:
            return None
        conflict = Conflict(worst, Access(item, turns, pipe, number, write=True))
        if self.settle is None:
            return conflict
        self.settle(conflict)
        self.settled += 1
        self.known[pipe][worst.pipe] = max(clock[worst.pipe], number if worst.pipe == pipe else worst.number + 1)
        return None

    def note_need(self, needed: set[int], pipe: int, touched: Sequence[tuple[str, Place, bool]]) -> None:
        """Notes that the pipe's last barrier is needed, where without it an access would conflict."""
        group, before = self.closed[pipe]
        if id(group) in needed:
            return
        own = self.known[pipe]
        now, own[pipe] = own[pipe], before
        if any(self.latest_open(space, place, write, pipe) is not None for space, place, write in touched):
            needed.add(id(group))
        own[pipe] = now

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

    def touched(self, statement: Statement, uses: Sequence[Use]) -> Iterator[tuple[str, Place, bool]]:
        """(memory of a core or buffer, bytes, written) of a statement."""
        for use in uses:
            if use.tensor in self.layout.tiles:
                tile = self.layout.tiles[use.tensor]
                yield tile.memory, self.tile_place(statement, use), use.write
            else:
                yield use.tensor, self.global_place(statement, use), use.write

    def tile_place(self, statement: Statement, use: Use) -> Place:
        """One copy of a tile: parts of it are told apart where cube instructions fill them."""
        tile = self.layout.tiles[use.tensor]
        base = self.layout.tiles[tile.alias] if tile.alias else tile
        low = self.layout.addresses[base.name]
        reach = reach_of(statement, use, tile.dtype.itemsize, self.number)
        if reach is not None:
            return _moved(low, reach)
        if base.copies > 1:
            offset = (self.number(use.offset) or 0) - (1 if fills_up(statement) else 0)
            low += offset * tile.dtype.itemsize // base.size * base.size
        share = share_of(statement, use)
        return Place(low, low + base.size) if share is None else Place(low + share, low + base.size, SHARES, 1)

    def global_place(self, statement: Statement, use: Use) -> Place:
        """The bytes of a copy; all of the buffer where data decides or its accesses are of several forms."""
        reach = reach_of(statement, use, self.layout.tensors[use.tensor].dtype.itemsize, self.number)
        if reach is not None and use.tensor not in self.layout.mixed:
            return _moved(0, reach)
        start = self.number(use.offset)
        if start is None or use.tensor in self.layout.mixed or not isinstance(statement, Call):
            return Place(0, 1 << 62)
        item = self.layout.tensors[use.tensor].dtype.itemsize
        copied = self.copied(statement, item)
        if copied is None:
            return Place(0, 1 << 62)
        count, length, source_gap, target_gap = copied
        gap = target_gap if use.write else source_gap
        low = start * item
        high = low + (count - 1) * (length + gap) + length
        return Place(low, high, length + gap if count > 1 else 0, length)

    def copied(self, call: Call, item: int) -> tuple[int, int, int, int] | None:
        """Bursts of a copy, bytes of each, bytes between two in source and target; None for others, and for the unknown."""
        sizes = next((a for a in call.arguments if isinstance(a, Struct)), None)
        if sizes is None:
            last = call.arguments[-1]
            count = self.number(last) if call.operation == "DataCopy" and isinstance(last, Expression) else None
            return None if count is None else (1, count * item, 0, 0)
        if not sizes.name.startswith("DataCopy"):
            return None
        values = [self.number(value) if isinstance(value, Expression) else None for value in sizes.values[:4]]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        unit = BLOCK if sizes.name == "DataCopyParams" else 1
        bursts, length, source_gap, target_gap = known
        return bursts, length * unit, source_gap * unit, target_gap * unit

    def number(self, expression: Expression) -> int | None:
        """The value of an integer expression, None where data or a lost name decides it."""
        try:
            value = Scope(self.values, self.layout.fields, _unknown).value(expression)
        except BadScalar:
            return None
        return int(value) if isinstance(value, int) else None


def _moved(low: int, reach: Reach) -> Place:
    return Place(low + reach.low, low + reach.high, reach.step, reach.length)


def later(first: Access, second: Access) -> bool:
    """The later of one pipe's accesses stands for the others; other pipes come after it."""
    return first.pipe == second.pipe and first.number > second.number


def _unknown(tensor: str, index: int) -> int:
    raise BadScalar(f"{tensor}[{index}] is data")


def variants(root: Item, layout: Layout) -> tuple[str, ...]:
    """The variants that are not the same run as another one's."""
    parts = [item.statement for item in leaves(root) if isinstance(item.statement, For | If)]
    parts = [part for part in parts if _decided(part) not in layout.exact]
    loops = [part for part in parts if isinstance(part, For)]
    counted = all(turns_of(loop) is not None for loop in loops)
    certain = len(loops) == len(parts) and all(loop.variable in layout.sure for loop in loops)
    turns = (ALL_TAKEN,) if counted else tuple(name for name in TURNS if name not in (NONE_TAKEN, OUTER_TAKEN))
    return turns if certain else (*turns, NONE_TAKEN, OUTER_TAKEN)


def _decided(part: For | If) -> Decided:
    return part.variable if isinstance(part, For) else part.condition


def needed_barriers(root: Item, layout: Layout) -> frozenset[int]:
    """Barriers of one pipe, by identity, without which a clean proof would fail whatever else is taken out."""
    found: set[int] = set()
    for block in layout.blocks:
        for variant in variants(root, layout):
            values: dict[str, int | float] = {"GetBlockIdx": block, "GetBlockNum": 1}
            Trace(layout, variant, with_ids=False, values=values, needed=found).run(root)
    return frozenset(found)


def faults(root: Item, layout: Layout, with_ids: bool = False) -> Conflict | FlagFault | None:
    """The first fault of any variant."""
    for block in layout.blocks:
        values = {"GetBlockIdx": block, "GetBlockNum": 1}
        for variant in variants(root, layout):
            fault = Trace(layout, variant, with_ids, values=dict(values)).run(root)
            if fault is not None:
                return fault
        for branch in root.items if len(root.items) > 1 else ():
            part = branch.statement
            if isinstance(part, For | If) and _decided(part) not in layout.exact:  # other cores take other branches
                fault = Trace(layout, ALL_TAKEN, with_ids, left_out=branch, values=dict(values)).run(root)
                if fault is not None:
                    return fault
    return None


def layout_of(
    body: Sequence[Statement],
    tiles: Mapping[str, Tile],
    addresses: Mapping[str, int],
    tensors: Mapping[str, GlobalTensor],
    fields: Mapping[str, int],
) -> Layout:
    """The layout of a program's tensors; ``fields`` are sample values of the tiling struct."""
    deciding = decided_by_block(body)
    return Layout(
        tiles,
        addresses,
        tensors,
        fields,
        mixed_buffers(body, tuple(tensors)),
        sure_loops(body),
        frozenset(deciding),
        _blocks(deciding),
    )


def _blocks(deciding: Mapping[Decided, tuple[Expression, ...]]) -> tuple[int, ...]:
    """A block for each way in which blocks differ: turns beyond four count modulo 2."""
    found: dict[tuple[int, ...], int] = {}
    for block in range(MOST_BLOCKS):
        scope = Scope({"GetBlockIdx": block}, {}, _unknown)
        way: list[int] = []
        for parts in deciding.values():
            values = [scope.integer(part) for part in parts]
            turns = values[0] if len(values) == 1 else max(0, -(-(values[1] - values[0]) // max(values[2], 1)))
            way.append(turns if turns <= 4 else 4 + turns % 2)
        found.setdefault(tuple(way), block)
    return tuple(found.values())
