"""The nest verifier: good nests pass, and every planted fault is found with its number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelgen.errors import NestError
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Call,
    Compare,
    If,
    IndexValue,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Space,
    Statement,
    Store,
    ValueIndex,
    Var,
)
from kernelgen.nest.verify import verify
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BOOL, FLOAT32, FLOAT64, INT32
from tests.support.nests import I, J, block, buffer, call, local, loop, map_nest, output, reduce_nest, softmax_nest

X, Y = buffer("x", 4), output("y", 4)
ONE = Literal(1.0, FLOAT32)
AT = (I,)
T = local("t")


def nest(*body: Statement) -> Nest:
    return Nest("planted", ("N",), (X, Y), Block(body))


def rows(*body: Statement) -> Nest:
    return nest(loop(I, 4, *body, kind=LoopKind.SERIAL))


FAULTS = {
    "accumulation into nothing": (12, rows(Accumulate(Y, AT, "add", ONE))),
    "started too late": (12, rows(Accumulate(Y, AT, "add", ONE), Store(Y, AT, ONE))),
    "a place from an unbound value": (2, rows(Store(Y, (ValueIndex(Ref("a", INT32)),), ONE))),
    "a place from a float": (11, rows(Let("a", ONE), Store(Y, (ValueIndex(Ref("a", FLOAT32)),), ONE))),
    "a place from an expression": (11, rows(Store(Y, (ValueIndex(Literal(1, INT32)),), ONE))),
    "data in a bound": (
        11,
        nest(Let("a", Literal(1, INT32)), replace(loop(I, 4), upper=ValueIndex(Ref("a", INT32)))),
    ),
    "unbound variable": (1, rows(Store(Y, (J,), ONE))),
    "variable outside of its loop": (1, nest(loop(I, 4), Store(Y, AT, ONE))),
    "unbound variable in a bound": (1, nest(loop(I, sym("M"), Store(Y, AT, ONE)))),
    "unbound variable in a condition": (1, rows(If((Compare("<", J, Num(1)),), block()))),
    "unbound variable in a value": (1, rows(Store(Y, AT, call("cast", IndexValue(J, FLOAT32))))),
    "variable bound twice": (1, rows(loop(I, 2, Store(Y, AT, ONE)))),
    "a symbol as variable": (1, nest(loop(Var("N"), 4))),
    "no step": (1, nest(replace(loop(I, 4), step=0))),
    "binding read before": (2, rows(Store(Y, AT, Ref("a", FLOAT32)), Let("a", ONE))),
    "binding read outside": (2, rows(Block((Let("a", ONE),)), Store(Y, AT, Ref("a", FLOAT32)))),
    "binding of another dtype": (2, rows(Let("a", ONE), Store(Y, AT, Call("cast", (Ref("a", INT32),), FLOAT32)))),
    "binding made twice": (2, rows(Let("a", ONE), Let("a", ONE))),
    "unknown buffer": (3, rows(Store(Y, AT, Load(buffer("z", 4), AT)))),
    "another buffer of the same name": (3, rows(Store(Y, AT, Load(buffer("x", 5), AT)))),
    "local before its allocation": (3, rows(Store(T, (), ONE), Alloc(T))),
    "local outside of its block": (3, nest(Block((Alloc(T),)), Store(T, (), ONE))),
    "buffer made twice": (3, nest(Alloc(T), Alloc(T))),
    "loops beside an interleaved vector loop": (
        10,
        nest(loop(I, 4, loop(J, 4), loop(Var("k"), 4), kind=LoopKind.INTERLEAVE)),
    ),
    "a store beside an interleaved vector loop": (
        10,
        nest(loop(I, 4, Store(Y, AT, ONE), loop(J, 4), kind=LoopKind.INTERLEAVE)),
    ),
    "an interleaved loop of serial ones": (
        10,
        nest(loop(I, 4, loop(J, 4, kind=LoopKind.SERIAL), kind=LoopKind.INTERLEAVE)),
    ),
    "output allocated": (3, nest(Alloc(output("z", 4)))),
    "too few indices": (4, rows(Store(Y, (), ONE))),
    "too many indices": (4, rows(Store(Y, AT, Load(X, (I, I))))),
    "unknown function": (5, rows(Store(Y, AT, Call("frobnicate", (ONE,), FLOAT32)))),
    "wrong number of operands": (5, rows(Store(Y, AT, Call("add", (ONE,), FLOAT32)))),
    "mixed operands": (5, rows(Store(Y, AT, Call("add", (Literal(1, INT32), ONE), FLOAT32)))),
    "comparison that is no bool": (5, rows(Store(Y, AT, Call("less", (ONE, ONE), FLOAT32)))),
    "sum of another dtype": (5, rows(Store(Y, AT, Call("cast", (Call("add", (ONE, ONE), INT32),), FLOAT32)))),
    "condition that is no bool": (5, rows(Store(Y, AT, Call("select", (ONE, ONE, ONE), FLOAT32)))),
    "select of two dtypes": (
        5,
        rows(Store(Y, AT, Call("select", (Literal(True, BOOL), ONE, Literal(1, INT32)), FLOAT32))),
    ),
    "unknown reduction": (5, rows(Accumulate(Y, AT, "sub", ONE))),
    "value of another dtype": (6, rows(Store(Y, AT, Literal(1.0, FLOAT64)))),
    "accumulation of another dtype": (6, rows(Accumulate(Y, AT, "add", Literal(1.0, FLOAT64)))),
    "written input": (6, rows(Store(X, AT, ONE))),
    "loop in a vector loop": (7, nest(loop(I, 4, loop(J, 4)))),
    "loop in a branch of a vector loop": (7, nest(loop(I, 4, If((Compare("<", I, Num(1)),), block(loop(J, 4)))))),
    "local of unknown size": (8, nest(Alloc(local("t", sym("M"))))),
    "missing argument shape": (9, replace(nest(), argument_shapes=((4,),))),
    "argument shape of another size": (9, replace(nest(), argument_shapes=((4,), (2, 3)))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str) -> None:
    number, planted = FAULTS[fault]
    with pytest.raises(NestError, match=f"^invariant {number}: "):
        verify(planted)


def test_good_nests_pass() -> None:
    verify(softmax_nest(sym("M"), sym("N"), ("M", "N")))
    verify(reduce_nest("add", 3, 4))
    verify(map_nest(lambda a, b: call("select", call("less", a, b), a, b), 7, FLOAT32, FLOAT32))
    verify(replace(nest(), argument_shapes=((2, 2), (4, 1))))
    verify(nest(Alloc(local("t", sym("N"))), loop(I, 4, loop(J, 4, Store(Y, (J,), ONE)), kind=LoopKind.SERIAL)))
    update = Accumulate(Y, AT, "add", Load(T, ()))
    verify(rows(Store(Y, AT, ONE), Let("a", ONE), Alloc(T), Store(T, (), Ref("a", FLOAT32)), update))


def test_the_message_shows_the_statement() -> None:
    with pytest.raises(NestError, match=r"in `y\[j\] = 1.0`"):
        verify(rows(Store(Y, (J,), ONE)))


def test_every_space_but_input_may_be_written() -> None:
    for space in (Space.OUTPUT, Space.INOUT, Space.WORKSPACE):
        target = Buffer("z", FLOAT32, (4,), space)
        verify(Nest("write", (), (target,), block(loop(I, 4, Store(target, AT, ONE)))))
