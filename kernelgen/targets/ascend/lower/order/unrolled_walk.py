"""A walk over a program that is not printed yet: a few turns of every loop, and what each instruction touches.

Loops run one or two turns, up to four where tiles have two copies: what a turn leaves to the next but one is the same for all
later ones. Branches and loops that may be empty run in some variants and not in others. Sizes that are not known have the
values of :data:`SAMPLE`. What becomes of the accesses and flags that it meets, those who walk say (:mod:`trace`,
:mod:`replay`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelgen.ascendc.clocks import SCALAR, CoreClock
from kernelgen.ascendc.expressions import Expression, Number
from kernelgen.ascendc.instructions import Call, For, If, Let, Statement
from kernelgen.ascendc.pipes import pipe_of
from kernelgen.ascendc.types import PIPES
from kernelgen.simulators.ascendc.core.scalars import BadScalar, Scope
from kernelgen.targets.ascend.lower.order.program_layout import Layout, data_is_unknown
from kernelgen.targets.ascend.lower.order.touched_places import Place, Touched, touched_by
from kernelgen.targets.ascend.lower.order.walk_variants import (
    NONE_TAKEN,
    OUTER_TAKEN,
    TURNS,
    Way,
    most_turns,
)
from kernelgen.targets.ascend.lower.program.effects import is_fixed, uses_of
from kernelgen.targets.ascend.lower.program.loop_facts import (
    turns_of,
)
from kernelgen.targets.ascend.lower.program.statement_tree import Item, Sync

Turns = tuple[tuple[Item, int], ...]


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


Fault = Conflict | FlagFault


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
        self.scope = Scope(self.values, self.layout.fields, data_is_unknown)

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
            touched = tuple(touched_by(self.layout, self.number, statement, item.uses))
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

    def number(self, expression: Expression) -> int | None:
        """The value of an integer expression, None where data or a lost name decides it."""
        if isinstance(expression, Number):
            return expression.value if isinstance(expression.value, int) else None
        try:
            value = self.layout.evaluate(expression)(self.scope)
        except BadScalar:
            return None
        return int(value) if isinstance(value, int) else None
