"""The ways through a program: how many turns its loops run, which branches are taken, and which block runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.ascendc.instructions import For, If
from kernelgen.targets.ascend.lower.order.program_layout import Layout
from kernelgen.targets.ascend.lower.program.loop_facts import (
    Decided,
    turns_of,
)
from kernelgen.targets.ascend.lower.program.statement_tree import Item, leaves

TURNS = {"all": 4, "three": 3, "two": 2, "one": 1, "none": 4, "outer": 4}
"""Variant -> the turns of a loop at most."""
ALL_TAKEN, NONE_TAKEN, OUTER_TAKEN = "all", "none", "outer"
TAKEN = (ALL_TAKEN, "three", "two", "one")


@dataclass(frozen=True)
class Way:
    """How a program is gone through: a variant of :data:`TURNS`, a block, and a part that other cores do, not this one."""

    variant: str = ALL_TAKEN
    block: int = 0
    left_out: Item | None = None


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
