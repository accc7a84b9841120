"""Nests as text."""

from __future__ import annotations

from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Call,
    Compare,
    If,
    Index,
    IndexBinary,
    IndexOp,
    IndexValue,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Store,
    Var,
)
from kernelgen.nest.text import show, show_expression, show_index, show_statement
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT32, INT32
from tests.support.nests import I, J, block, buffer, call, local, loop, output, softmax_nest

SOFTMAX = """\
nest softmax[M](input x: f32[M, 8], output y: f32[M, 8]) {
  parallel for i in 0..M {
    alloc top: f32[]
    alloc total: f32[]
    alloc row: f32[8]
    top[] = -inf
    total[] = 0.0
    vector for j in 0..8 {
      top[] max= x[i, j]
    }
    vector for j in 0..8 {
      row[j] = exp(x[i, j] - top[])
      total[] += row[j]
    }
    vector for j in 0..8 {
      y[i, j] = row[j] / total[]
    }
  }
}
"""


def test_a_whole_nest() -> None:
    assert show(softmax_nest(sym("M"), 8, ("M",))) == SOFTMAX


def test_statements() -> None:
    x, y, t = buffer("x", 4), output("y", 4), local("t", dtype=BFLOAT16)
    guarded = If((Compare("<=", Num(1), I), Compare("<", I, Num(3))), block(Let("a", Load(x, (I,)))))
    strided = loop(I, 4, guarded, Block((Alloc(t),)), kind=LoopKind.UNROLL)
    strided = type(strided)(strided.var, strided.lower, strided.upper, strided.body, strided.kind, 2)
    assert show_statement(strided) == (
        "unroll for i in 0..4 step 2 {\n  if 1 <= i and i < 3 {\n    let a: f32 = x[i]\n  }\n"
        "  {\n    alloc t: bf16[]\n  }\n}"
    )  # fmt: skip
    assert show_statement(Accumulate(y, (I,), "logical_or", Ref("a", FLOAT32))) == "y[i] or= a"
    assert show_statement(Store(y, (I,), Literal(2.0, FLOAT32))) == "y[i] = 2.0"


def test_expressions() -> None:
    x = Load(buffer("x", 4), (I,))
    assert show_expression(call("mul", call("add", x, x), x)) == "(x[i] + x[i]) * x[i]"
    assert show_expression(call("select", call("less", x, x), x, x)) == "select(x[i] < x[i], x[i], x[i])"
    assert show_expression(Call("cast", (Literal(2, INT32),), FLOAT32)) == "cast<f32>(2:i32)"
    assert show_expression(IndexValue(IndexBinary(IndexOp.ADD, I, Num(1)), INT32)) == "[i + 1]:i32"


def test_indices_keep_their_grouping() -> None:
    def op(kind: IndexOp, left: Index, right: Index) -> IndexBinary:
        return IndexBinary(kind, left, right)

    assert show_index(op(IndexOp.ADD, op(IndexOp.MUL, I, Num(4)), J)) == "i*4 + j"
    assert show_index(op(IndexOp.MUL, op(IndexOp.ADD, I, Num(4)), J)) == "(i + 4)*j"
    assert show_index(op(IndexOp.SUB, I, op(IndexOp.SUB, J, Num(1)))) == "i - (j - 1)"
    assert show_index(op(IndexOp.ADD, I, Num(-1))) == "i - 1"
    assert show_index(op(IndexOp.DIV, I, op(IndexOp.MOD, J, Num(2)))) == "i/(j%2)"
    assert show_index(op(IndexOp.MIN, op(IndexOp.ADD, I, Num(8)), Var("N"))) == "min(i + 8, N)"


def test_an_empty_nest() -> None:
    assert show(Nest("nothing", (), (), Block())) == "nest nothing() {\n}\n"
