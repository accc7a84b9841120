"""Boxes of loops, and computed factors of products that get arrays of their own."""

from __future__ import annotations

from nests import I, J, block, buffer, loop, output

from kernelgen.nest.index import add, minimum
from kernelgen.nest.nodes import Accumulate, Call, Expr, For, Let, Literal, Load, LoopKind, Nest, Num, Ref, Store, Var
from kernelgen.nest.text import show
from kernelgen.nest.verify import verify
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, DType
from kernelgen.transforms.ascend.materialise_operands import round_factors
from kernelgen.transforms.common.iteration_box import boxes

K, C = Var("k"), Var("c")
A, B, Y = buffer("a", 4, 8), buffer("b", 8, 6, dtype=FLOAT16), output("y", 4, 6)


def cast(expr: Expr, dtype: DType) -> Call:
    return Call("cast", (expr,), dtype)


def product(left: Expr) -> Nest:
    """y = left @ b, the left factor bound outside of the innermost loop."""
    term = Call("mul", (cast(Ref("v", FLOAT16), FLOAT32), cast(Load(B, (K, J)), FLOAT32)), FLOAT32)
    start = loop(J, 6, Store(Y, (I, J), Literal(0.0, FLOAT32)))
    total = loop(K, 8, Let("v", left), loop(J, 6, Accumulate(Y, (I, J), "add", term)), kind=LoopKind.SERIAL)
    return Nest("case", (), (A, B, Y), block(loop(I, 4, start, total, kind=LoopKind.BLOCK)))


def test_a_rounded_factor_is_computed_once() -> None:
    nest = round_factors(product(cast(Load(A, (I, K)), FLOAT16)))
    verify(nest)
    assert show(nest).strip() == (
        """\
nest case(input a: f32[4, 8], input b: f16[8, 6], output y: f32[4, 6], workspace a_f16: f16[4, 8]) {
  block for f0 in 0..4 {
    vector for f1 in 0..8 {
      a_f16[f0, f1] = cast<f16>(a[f0, f1])
    }
  }
  block for i in 0..4 {
    vector for j in 0..6 {
      y[i, j] = 0.0
    }
    for k in 0..8 {
      vector for j in 0..6 {
        y[i, j] += cast<f32>(a_f16[i, k]) * cast<f32>(b[k, j])
      }
    }
  }
}"""
    )


def test_a_factor_that_is_loaded_stays() -> None:
    half = buffer("a", 4, 8, dtype=FLOAT16)
    nest = product(Load(half, (I, K)))
    assert round_factors(nest) == nest


def test_a_factor_that_does_not_load_all_of_its_array_stays() -> None:
    nest = product(cast(Load(buffer("a", 9, 8), (I, K)), FLOAT16))
    assert round_factors(nest) == nest


def test_chunks_of_a_loop_are_one_loop() -> None:
    inner = For("i", C, minimum(Num(64), add(C, Num(11))), block())
    assert boxes((For("c", Num(0), Num(64), block(inner), step=11), inner)) == {"i": Num(64)}
    short = For("i", C, add(C, Num(11)), block())
    assert boxes((For("c", Num(0), Num(64), block(short), step=11), short)) is None
    assert boxes((For("c", Num(0), Num(66), block(short), step=11), short)) == {"i": Num(66)}
    corner = For("j", Num(0), I, block())
    assert boxes((For("i", Num(0), Num(4), block(corner)), corner)) is None
