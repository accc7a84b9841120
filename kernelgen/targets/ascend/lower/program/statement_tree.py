"""A tile program as a tree that grows flags: items with identity, so that a pass can say where one stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.ascendc.builder import make_call
from kernelgen.ascendc.expressions import Expression, Name, Number
from kernelgen.ascendc.instructions import For, If, Let, Statement
from kernelgen.ascendc.types import PIPES
from kernelgen.targets.ascend.lower.program.effects import Use

SET, WAIT, BARRIER, DRAIN = "set", "wait", "barrier", "drain"


@dataclass(eq=False)
class Item:
    """A statement; loops and branches hold items. ``sync`` items belong to a group and have no statement.

    ``pipe`` and ``uses`` are found when they are asked for.
    """

    statement: Statement | None
    items: list[Item] = field(default_factory=list["Item"])
    parent: Item | None = None
    sync: Sync | None = None
    pipe: int = -1
    uses: tuple[Use, ...] | None = None

    @property
    def loop(self) -> For | None:
        """The loop that the item is."""
        return self.statement if isinstance(self.statement, For) else None

    @property
    def parity(self) -> str:
        """The name of the turn's parity where the item is a loop whose tiles have two copies; else empty."""
        lets = (item.statement for item in self.items if isinstance(item.statement, Let))
        return next((let.name for let in lets if let.parity), "")

    def ancestors(self) -> list[Item]:
        """The item and what holds it, innermost first."""
        found, here = [], self
        while here is not None:
            found.append(here)
            here = here.parent
        return found


@dataclass(eq=False)
class Group:
    """A flag's sets and waits, or one barrier. ``half`` names the turn's parity where it has two ids."""

    kind: str
    source: int
    target: int
    half: str = ""
    identity: int = -1
    items: list[Item] = field(default_factory=list[Item])


@dataclass(frozen=True, eq=False)
class Sync:
    """One set or wait of a group; ``slot`` picks an id of two, None the one of the turn."""

    group: Group
    action: str
    slot: int | None = 0


def grow(body: Sequence[Statement]) -> Item:
    """The tree of a program's body."""
    root = Item(None)
    root.items = [_item(statement, root) for statement in body]
    return root


def _item(statement: Statement, parent: Item) -> Item:
    item = Item(statement, parent=parent)
    if isinstance(statement, For):
        item.items = [_item(one, item) for one in statement.body]
    elif isinstance(statement, If):
        item.items = [_item(one, item) for one in statement.then]
    return item


def adopt(parent: Item, root: Item) -> None:
    """Puts the items of another tree behind a block's."""
    for item in root.items:
        item.parent = parent
    parent.items += root.items


def harvest(item: Item) -> tuple[Statement, ...]:
    """The statements of a tree."""
    return tuple(_statement(one) for one in item.items)


def _statement(item: Item) -> Statement:
    if item.sync is not None:
        return _call(item.sync)
    match item.statement:
        case For() as loop:
            return replace(loop, body=harvest(item))
        case If() as branch:
            return replace(branch, then=harvest(item))
        case Statement() as other:
            return other
        case _:
            raise AssertionError("an item without a statement")


def _call(sync: Sync) -> Statement:
    group = sync.group
    if sync.action == DRAIN:
        return make_call("PipeBarrier", ("PIPE_ALL",))
    if sync.action == BARRIER:
        return make_call("PipeBarrier", (f"PIPE_{PIPES[group.target]}",))
    event = f"HardEvent::{PIPES[group.source]}_{PIPES[group.target]}"
    return make_call("SetFlag" if sync.action == SET else "WaitFlag", (event,), id=_id(sync))


def _id(sync: Sync) -> Expression:
    group = sync.group
    if sync.slot is None:
        return Name(group.half) + group.identity
    return Number(group.identity + sync.slot)


def insert(parent: Item, position: int, sync: Sync) -> None:
    """Puts ``sync``, a set, wait or barrier, into the block ``parent`` at a ``position``."""
    item = Item(None, parent=parent, sync=sync)
    parent.items.insert(position, item)
    sync.group.items.append(item)


def remove(group: Group) -> None:
    """Takes a group out."""
    for item in group.items:
        if item.parent is not None:
            item.parent.items.remove(item)


def leaves(item: Item) -> Iterator[Item]:
    """All items below."""
    for one in item.items:
        yield one
        yield from leaves(one)
