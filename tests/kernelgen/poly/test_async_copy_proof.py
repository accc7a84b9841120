"""Asynchronous copies are awaited before anybody touches what they bring: what the passes make is proved, faults are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import count

import pytest

from kernelgen.errors import ProofError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    AsyncCopy,
    AwaitCopies,
    Block,
    CommitCopies,
    Compare,
    For,
    If,
    LoadFragments,
    Nest,
    Num,
    Statement,
    Sync,
    Var,
)
from kernelgen.nest.walk import map_blocks, statements
from kernelgen.plan import Plan
from kernelgen.poly.proof.races import prove_races
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym
from tests.support.product_kernels import Shape, product

Edit = Callable[[Statement], Sequence[Statement]]


@cache
def by_copies(rows: Dim = 256, terms: Dim = 256, *, turned: bool = False) -> Nest:
    """A product of half precision, whose operands are copied several tiles ahead."""
    return lower(product(Shape(rows, 128, terms, (), turned, not turned), "float16"), Plan(), "gpu").nest


def edited(nest: Nest, edit: Edit) -> Nest:
    """The nest with each statement replaced by some."""
    body = map_blocks(nest.body, lambda block: Block(tuple(s for part in block.statements for s in edit(part))))
    return replace(nest, body=body)


@pytest.mark.parametrize("nest", [by_copies(), by_copies(sym("M")), by_copies(256, sym("K"), turned=True)])
def test_what_the_passes_make_lands(nest: Nest) -> None:
    assert any(isinstance(part, AsyncCopy) for part in statements(nest.body))
    assert len([fact for fact in prove_races(nest) if fact.check == "landing"]) == 2


def dropped(*kinds: type[Statement]) -> Edit:
    return lambda part: () if isinstance(part, kinds) else (part,)


def one_more_pending(part: Statement) -> Sequence[Statement]:
    return (AwaitCopies(part.pending + 1),) if isinstance(part, AwaitCopies) else (part,)


def awaited_behind_the_barrier(part: Statement) -> Sequence[Statement]:
    if isinstance(part, AwaitCopies):
        return (Sync(), part)
    return () if isinstance(part, Sync) else (part,)


def awaited_by_some_turns(part: Statement) -> Sequence[Statement]:
    """The last turn does not wait."""
    return (If((Compare("<", Var("tile"), Num(5)),), Block((part,))),) if isinstance(part, AwaitCopies) else (part,)


def one_group_for_two_tiles(part: Statement) -> Sequence[Statement]:
    """Every second tile has no group of its own."""
    if isinstance(part, For) and part.var == "tile":
        even = Compare("==", ix.modulo(Var("tile"), Num(2)), Num(0))
        return (replace(part, body=edited_block(part.body, lambda s: guarded(s, CommitCopies, even))),)
    return (part,)


def read_a_stage_ahead(part: Statement) -> Sequence[Statement]:
    """What is still on its way is multiplied."""
    if isinstance(part, LoadFragments):
        stage, *rest = part.start
        return (replace(part, start=(ix.modulo(ix.add(stage, Num(1)), Num(3)), *rest)),)
    return (part,)


def edited_block(block: Block, edit: Edit) -> Block:
    return Block(tuple(s for part in block.statements for s in edit(part)))


def guarded(part: Statement, kind: type[Statement], condition: Compare) -> Sequence[Statement]:
    return (If((condition,), Block((part,))),) if isinstance(part, kind) else (part,)


FAULTS = [
    dropped(AwaitCopies), dropped(CommitCopies), one_more_pending, awaited_behind_the_barrier, awaited_by_some_turns,
    one_group_for_two_tiles, read_a_stage_ahead,
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: Edit) -> None:
    nest = edited(by_copies(), fault)
    assert nest != by_copies()
    with pytest.raises(ProofError) as error:
        prove_races(nest)
    assert error.value.check == "landing"


def test_a_commit_that_some_threads_make_is_no_meeting() -> None:
    first = Compare("<", Var("tx"), Num(32))
    with pytest.raises(ProofError) as error:
        prove_races(edited(by_copies(), lambda part: guarded(part, CommitCopies, first)))
    assert error.value.check == "meeting"


def test_each_await_is_needed() -> None:
    """There is none for nothing."""
    awaits = sum(isinstance(part, AwaitCopies) for part in statements(by_copies().body))
    for chosen in range(awaits):
        seen = count()
        thinner = edited(
            by_copies(),
            lambda part, seen=seen, chosen=chosen: (
                () if isinstance(part, AwaitCopies) and next(seen) == chosen else (part,)
            ),
        )
        with pytest.raises(ProofError):
            prove_races(thinner)
