"""Rows of a column reduction are taken eight at a time where this is legal, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import column_sum
from nests import I, J, block, buffer, call, local, loop, output

from kernelgen.driver import compile
from kernelgen.nest.nodes import Accumulate, For, If, Let, Load, LoopKind, Nest, Ref, Statement, Store
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan
from kernelgen.tensor.dims import Dim, sym
from kernelgen.transforms.cpu.unroll_and_jam import MANY, MAX_TERMS, jam_rows

N = sym("N")
ROWS = CpuPlan().jam
X, Y = buffer("x", N, 64), output("y", 64)
ELEMENT = Load(X, (I, J))
SUM = (Let("v", ELEMENT), Accumulate(Y, (J,), "add", Ref("v", X.dtype)))


def jammed(nest: Nest) -> Nest:
    return jam_rows(nest, ROWS)


def rows(*body: Statement, extent: Dim = N, kind: LoopKind = LoopKind.SERIAL) -> Nest:
    columns = loop(J, 64, *body, kind=LoopKind.VECTOR)
    return Nest("case", ("N",), (X, Y), block(loop(I, extent, columns, kind=kind)))


def loops_over_rows(nest: Nest) -> list[For]:
    return [s for s in statements(nest.body) if isinstance(s, For) and s.var == "i"]


def test_eight_rows_then_one() -> None:
    whole, rest = loops_over_rows(jammed(rows(*SUM)))
    assert (whole.step, rest.step) == (ROWS, 1)
    assert whole.upper == rest.lower
    sums = [s for s in statements(whole) if isinstance(s, Accumulate)]
    assert len(sums) == ROWS
    bound = [s.name for s in (*statements(whole), *statements(rest)) if isinstance(s, Let)]
    assert len(set(bound)) == ROWS + 1


def test_rows_that_accumulate_into_several_elements_are_fewer_at_once() -> None:
    others = [Accumulate(output(f"y{k}", 64), (J,), "add", Ref("v", X.dtype)) for k in range(4)]
    whole, rest = loops_over_rows(jammed(rows(SUM[0], *others)))
    assert (whole.step, rest.step) == (MAX_TERMS // 4, 1)


def test_a_block_of_held_sums_stays() -> None:
    held = [Accumulate(local(f"held{k}", 64), (J,), "add", Ref("v", X.dtype)) for k in range(MANY)]
    assert jammed(rows(SUM[0], *held)) == rows(SUM[0], *held)
    assert jammed(rows(SUM[0], *held[1:])) != rows(SUM[0], *held[1:])


@pytest.mark.parametrize(
    "nest",
    [
        rows(Let("v", Load(Y, (J,))), Accumulate(Y, (J,), "add", Ref("v", X.dtype))),
        rows(*SUM, Store(X, (I, J), call("neg", ELEMENT))),
        rows(Accumulate(buffer("z", N), (I,), "add", ELEMENT)),
        rows(*SUM, extent=2 * ROWS - 1),
        rows(*SUM, kind=LoopKind.PARALLEL),
        Nest("case", ("N",), (X, Y), block(loop(I, N, loop(J, 64, *SUM)))),
    ],
    ids=["loads its sums", "stores", "a sum for each row", "few rows", "parallel rows", "no vector loop"],
)
def test_other_loops_stay(nest: Nest) -> None:
    assert jammed(nest) == nest


@pytest.mark.parametrize("extent", [16, 17, 23, 31, 97])
def test_rows_that_eight_does_not_divide_are_all_added(extent: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (extent, 33)).astype(np.float32)
    for target in ("cpu", "python"):
        kernel = compile(column_sum(extent, 33), target)
        np.testing.assert_array_equal(kernel(x)[0].ravel(), x.sum(axis=0))
    assert not any(isinstance(s, If) for s in statements(kernel.nest.body))
