"""Scalars that several parts of a kernel read are made again in each, as long as they are the same there."""

from __future__ import annotations

import pytest

from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import (
    Block,
    Buffer,
    Call,
    For,
    Let,
    Literal,
    Load,
    LoopKind,
    Num,
    Ref,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.targets.ascend.lower.cube.part_bindings import with_own_bindings
from kernelgen.tensor.dtypes import FLOAT32

X = Buffer("x", FLOAT32, (1,), Space.INPUT)
Y = Buffer("y", FLOAT32, (8,), Space.OUTPUT)
FIRST = Let("first", Load(X, (Num(0),)))
TWICE = Let("twice", Call("add", (Ref("first", FLOAT32), Ref("first", FLOAT32)), FLOAT32))
STORE = Store(Y, (Var("i"),), Ref("twice", FLOAT32))
CLEAR = Store(Y, (Num(0),), Literal(0.0, FLOAT32))
CHANGE = Store(X, (Num(0),), Literal(0.0, FLOAT32))


def dealt(*body: Statement) -> For:
    return For("i", Num(0), Num(8), Block(body), LoopKind.BLOCK)


def test_a_part_makes_what_it_reads_and_what_that_reads() -> None:
    parts = with_own_bindings([Block((FIRST, TWICE)), Block((CLEAR,)), Block((STORE,))])
    assert parts[1:] == [Block((CLEAR,)), Block((FIRST, TWICE, STORE))]


def test_a_loop_that_is_dealt_stays_alone() -> None:
    (_, loop) = with_own_bindings([Block((FIRST, TWICE)), Block((dealt(STORE),))])
    assert loop == Block((dealt(FIRST, TWICE, STORE),))


@pytest.mark.parametrize("between", [[], [Block((CLEAR,))]], ids=["its own part", "another part"])
def test_what_changes_in_between_is_refused(between: list[Block]) -> None:
    with pytest.raises(UnsupportedError, match="first is read by several parts"):
        with_own_bindings([Block((FIRST, TWICE, CHANGE)), *between, Block((STORE,))])


def test_what_a_dealt_loop_changes_itself_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="and x changes between them"):
        with_own_bindings([Block((FIRST, TWICE)), Block((dealt(STORE, CHANGE),))])


def test_a_part_that_is_not_dealt_reads_before_it_writes() -> None:
    (_, part) = with_own_bindings([Block((FIRST, TWICE)), Block((STORE, CHANGE))])
    assert part == Block((FIRST, TWICE, STORE, CHANGE))
