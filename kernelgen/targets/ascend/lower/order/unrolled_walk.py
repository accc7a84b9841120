"""A walk over a program that is not printed yet: a few turns of every loop, and what each instruction touches.

Loops run one or two turns, up to four where tiles have two copies: what a turn leaves to the next but one is the same for all
later ones. Branches and loops that may be empty run in some variants and not in others. Sizes that are not known have the
values of :data:`SAMPLE`. What becomes of the accesses and flags that it meets, those who walk say (:mod:`trace`,
:mod:`replay`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernelgen.ascendc.clocks import SCALAR, CoreClock
from kernelgen.ascendc.expressions import Expression, Number
from kernelgen.ascendc.instructions import Call, For, GlobalTensor, If, Let, Statement, Struct
from kernelgen.ascendc.pipes import pipe_of
from kernelgen.ascendc.types import BLOCK, GM, PIPES
from kernelgen.simulators.ascendc.core.scalars import BadScalar, Evaluate, Scope, evaluator
from kernelgen.targets.ascend.lower.order.written_bytes import SHARES, Reach, fills_up, reach_of, share_of
from kernelgen.targets.ascend.lower.program.effects import Use, is_fixed, uses_of
from kernelgen.targets.ascend.lower.program.loop_facts import (
    Decided,
    decided_by_block,
    mixed_buffers,
    sure_loops,
    turns_of,
)
from kernelgen.targets.ascend.lower.program.statement_tree import Item, Sync, leaves
from kernelgen.targets.ascend.lower.program.writer import Tile

SAMPLE = (32771, 32779, 32783, 32789, 32797, 32801)
TURNS = {"all": 4, "three": 3, "two": 2, "one": 1, "none": 4, "outer": 4}
"""Variant -> the turns of a loop at most."""
ALL_TAKEN, NONE_TAKEN, OUTER_TAKEN = "all", "none", "outer"
TAKEN = (ALL_TAKEN, "three", "two", "one")
MOST_BLOCKS = 64
"""More than a machine has cores."""
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
    evaluators: dict[int, tuple[Expression, Evaluate]] = field(
        default_factory=dict[int, "tuple[Expression, Evaluate]"], compare=False
    )

    def evaluate(self, expression: Expression) -> Evaluate:
        """What gives the value of an expression, made once: a program asks for it in every turn."""
        kept = self.evaluators.get(id(expression))
        if kept is None:
            kept = self.evaluators[id(expression)] = expression, evaluator(expression)
        return kept[1]

    def memory_of(self, name: str) -> str:
        """The memory of a tensor."""
        return self.tiles[name].memory if name in self.tiles else GM


@dataclass(frozen=True)
class Way:
    """How a program is gone through: a variant of :data:`TURNS`, a block, and a part that other cores do, not this one."""

    variant: str = ALL_TAKEN
    block: int = 0
    left_out: Item | None = None


Fault = Conflict | FlagFault
Touched = tuple[str, Place, bool]
"""A memory of a core or a buffer, bytes, whether they are written."""


@dataclass
class Walk(ABC):
    """One variant's run; ``handed`` has an entry for each time that cores met."""

    layout: Layout
    way: Way
    values: dict[str, int | float] = field(init=False)
    scope: Scope = field(init=False)
    places: dict[str, dict[tuple[int, bool], dict[Place, Access]]] = field(default_factory=dict)
    handed: list[CoreClock] = field(default_factory=list[CoreClock])
    fixed: dict[Item, tuple[Touched, ...]] = field(default_factory=dict[Item, "tuple[Touched, ...]"])

    def __post_init__(self) -> None:
        self.values = {"GetBlockIdx": self.way.block, "GetBlockNum": 1}
        self.scope = Scope(self.values, self.layout.fields, _unknown)

    @abstractmethod
    def sync(self, sync: Sync) -> Fault | None:
        """A set, wait or barrier."""

    @abstractmethod
    def access(self, item: Item, turns: Turns, pipe: int, touched: Sequence[Touched]) -> Fault | None:
        """What an instruction touches."""

    @abstractmethod
    def cross(self, call: Call, pipe: int) -> None:
        """Cores meet."""

    def run(self, root: Item) -> Fault | None:
        """The first fault."""
        return self.block(root, (), 0)

    def block(self, parent: Item, turns: Turns, depth: int) -> Fault | None:
        """The items of a block in order; those that are settled in the meantime count from the next turn on."""
        for item in tuple(parent.items):
            fault = self.item(item, turns, depth)
            if fault is not None:
                return fault
        return None

    def item(self, item: Item, turns: Turns, depth: int) -> Fault | None:
        """One item."""
        if item.sync is not None:
            return self.sync(item.sync)
        if item is self.way.left_out:
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
        return self.way.variant not in (NONE_TAKEN, OUTER_TAKEN) or (self.way.variant == OUTER_TAKEN and depth == 0)

    def loop(self, item: Item, loop: For, turns: Turns, depth: int) -> Fault | None:
        """Some turns of a loop."""
        exact = loop.variable in self.layout.exact
        if not exact and loop.variable not in self.layout.sure and not self.taken(depth):
            return None
        start, step = self.number(loop.start) or 0, self.number(loop.step) or 1
        stop = self.number(loop.stop)
        for turn in range(self.turns(loop, most_turns(item))):
            if stop is not None and start + turn * step >= stop:
                break
            self.values[loop.variable] = start + turn * step
            fault = self.block(item, (*turns, (item, turn)), depth + 1)
            if fault is not None:
                return fault
        return None

    def turns(self, loop: For, most: int) -> int:
        """The turns of a loop that are looked at: all or an equal number modulo 2 where it is known how many there are."""
        known = turns_of(loop)
        if known is None and loop.variable in self.layout.exact:
            start, stop, step = (self.number(one) or 0 for one in (loop.start, loop.stop, loop.step))
            known = max(0, -(-(stop - start) // max(step, 1)))
        if known is None:
            return min(TURNS[self.way.variant], most)
        return known if known <= most else most - (known % 2 if most > 2 else 0)

    def statement(self, item: Item, statement: Statement, turns: Turns) -> Fault | None:
        """An instruction, or a scalar that gets its value."""
        if item.uses is None:
            called = isinstance(statement, Call)
            item.pipe = PIPES.index(pipe_of(statement, self.layout.memory_of)) if called else SCALAR
            item.uses = tuple(uses_of(statement))
        if isinstance(statement, Call) and statement.operation.startswith("CrossCore"):
            self.cross(statement, item.pipe)
            return None
        if item not in self.fixed:
            touched = tuple(self.touched(statement, item.uses))
            if is_fixed(statement):
                self.fixed[item] = touched
        else:
            touched = self.fixed[item]
        conflict = self.access(item, turns, item.pipe, touched)
        if isinstance(statement, Let):
            value = self.number(statement.value)
            if value is None:
                self.values.pop(statement.name, None)
            else:
                self.values[statement.name] = value
        return conflict

    def note(self, access: Access, touched: Sequence[Touched]) -> None:
        """Keeps an access, in a table of each place's latest."""
        for space, place, write in touched:
            table = self.places.setdefault(space, {}).setdefault((access.pipe, write), {})
            table.pop(place, None)
            table[place] = access

    def slot_of(self, sync: Sync) -> int:
        """Which of a group's ids a set or wait of this turn takes."""
        return int(self.values[sync.group.half]) if sync.slot is None else sync.slot

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
        if isinstance(expression, Number):
            return expression.value if isinstance(expression.value, int) else None
        try:
            value = self.layout.evaluate(expression)(self.scope)
        except BadScalar:
            return None
        return int(value) if isinstance(value, int) else None


def _moved(low: int, reach: Reach) -> Place:
    return Place(low + reach.low, low + reach.high, reach.step, reach.length)


def _unknown(tensor: str, index: int) -> int:
    raise BadScalar(f"{tensor}[{index}] is data")


def ways(root: Item, layout: Layout) -> Iterator[Way]:
    """All ways that are not the same as another one."""
    variants = _variants(root, layout)
    for block in layout.blocks:
        yield from (Way(variant, block) for variant in variants)
        for branch in root.items if len(root.items) > 1 else ():
            if isinstance(branch.statement, For | If) and _decided(branch) not in layout.exact:
                yield Way(ALL_TAKEN, block, left_out=branch)


def _variants(root: Item, layout: Layout) -> tuple[str, ...]:
    """Variants in which some loop has another number of turns than in the ones before."""
    items = [item for item in leaves(root) if isinstance(item.statement, For | If)]
    items = [item for item in items if _decided(item) not in layout.exact]
    loops = [(item, item.loop) for item in items if item.loop is not None]
    open_loops = [most_turns(item) for item, loop in loops if turns_of(loop) is None]
    turns = {tuple(min(TURNS[name], most) for most in open_loops): name for name in reversed(TAKEN)}
    certain = len(loops) == len(items) and all(loop.variable in layout.sure for _, loop in loops)
    taken = tuple(reversed(turns.values()))
    return taken if certain else (*taken, NONE_TAKEN, OUTER_TAKEN)


def most_turns(item: Item) -> int:
    """The turns of a loop after which nothing is new: twice as many where its tiles have two copies."""
    return 4 if item.parity else 2


def _decided(item: Item) -> Decided | None:
    match item.statement:
        case For(variable):
            return variable
        case If(condition):
            return condition
        case _:
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
