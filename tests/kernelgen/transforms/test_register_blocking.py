"""Results that stay in locals while a reduction runs: when, and what is computed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nests import I, J, block, buffer, call, loop, output

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Accumulate, Load, LoopKind, Nest, Num, Statement, Store, Var
from kernelgen.nest.text import show_statement
from kernelgen.transforms.cpu.register_blocking import MAX_LENGTH, registers

A, B, Y = buffer("a", 4, 9), buffer("b", 9, 8), output("y", 4, 8)
K = Var("k")
TERM = call("mul", Load(A, (I, K)), Load(B, (K, J)))


def sums(*body: Statement, columns: int = 8, kind: LoopKind = LoopKind.SERIAL) -> Nest:
    """``for i: for k: vector for j in 2..: body``."""
    vector = replace(loop(J, columns, *body, kind=LoopKind.VECTOR), lower=Num(2), upper=Num(2 + columns))
    inner = loop(K, 9, vector, kind=kind)
    return Nest("case", (), (A, B, Y), block(loop(I, 4, inner, kind=LoopKind.PARALLEL)))


def test_a_block_of_sums_is_held_and_added_to_its_target_once() -> None:
    (row,) = registers(sums(Accumulate(Y, (I, J), "add", TERM))).body.statements
    assert (
        show_statement(row)
        == """\
parallel for i in 0..4 {
  alloc held0: f32[8]
  vector for j in 0..8 {
    held0[j] = 0.0
  }
  for k in 0..9 {
    vector for j in 0..8 {
      held0[j] += a[i, k] * b[k, j + 2]
    }
  }
  vector for j in 0..8 {
    y[i, j + 2] += held0[j]
  }
}"""
    )


TOO_WIDE = sums(Accumulate(Y, (I, J), "add", TERM), columns=MAX_LENGTH + 1)
MOVING = sums(Accumulate(Y, (K, J), "add", TERM))
READ = sums(Accumulate(Y, (I, J), "add", call("mul", TERM, Load(Y, (I, J)))))
TWO_FUNCTIONS = sums(Accumulate(Y, (I, J), "add", TERM), Accumulate(Y, (I, J), "maximum", TERM))
MEETING = sums(Accumulate(Y, (I, J), "add", TERM), Accumulate(Y, (I, ix.add(J, Num(1))), "add", TERM))
STORED = sums(Store(Y, (I, J), TERM))
PARALLEL = sums(Accumulate(Y, (I, J), "add", TERM), kind=LoopKind.PARALLEL)


@pytest.mark.parametrize(
    "nest",
    [TOO_WIDE, MOVING, READ, TWO_FUNCTIONS, STORED, PARALLEL],
    ids=["too wide", "the target moves", "the target is read", "two functions", "a store", "a parallel reduction"],
)
def test_other_loops_stay_as_they_are(nest: Nest) -> None:
    assert registers(nest) == nest


def test_targets_that_overlap_are_sums_all_the_same() -> None:
    text = show_statement(registers(MEETING).body)
    assert "y[i, j + 2] += held0[j]" in text
    assert "held1[j]" in text
