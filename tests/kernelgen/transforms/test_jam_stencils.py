"""Rows of a stencil are taken several at once where this is legal and shares something, and results stay to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from nests import I, J, block, buffer, call, loop, output

from kernelgen.driver import compile
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Accumulate, Expr, For, Let, Load, LoopKind, Nest, Num, Ref, Statement, Store
from kernelgen.nest.walk import loads_of, statements
from kernelgen.transforms.cpu.jam_stencils import COUNTS, MOST, jam_stencils

X, Y, Z = buffer("x", 40, 64), output("y", 36, 60), output("z", 36, 60)


def at(row: int, column: int = 0) -> Load:
    return Load(X, (ix.add(I, Num(row)), ix.add(J, Num(column))))


def rows(*body: Statement, extent: int = 36, kind: LoopKind = LoopKind.SERIAL) -> Nest:
    columns = loop(J, 60, *body, kind=LoopKind.VECTOR)
    return Nest("case", (), (X, Y, Z), block(loop(I, extent, columns, kind=kind)))


def sums(*values: Expr) -> list[Statement]:
    """Their sum from left to right, stored in ``y``."""
    body: list[Statement] = [Let("s0", values[0])]
    for number, value in enumerate(values[1:], 1):
        before = Ref(f"s{number - 1}", X.dtype)
        body += [Let(f"v{number}", value), Let(f"s{number}", call("add", before, Ref(f"v{number}", X.dtype)))]
    return [*body, Store(Y, (I, J), Ref(f"s{len(values) - 1}", X.dtype))]


def loops_over_rows(nest: Nest) -> list[For]:
    return [s for s in statements(nest.body) if isinstance(s, For) and s.var == "i"]


def test_each_element_is_read_once_for_four_rows() -> None:
    whole, rest = loops_over_rows(jam_stencils(rows(*sums(at(0), at(1), at(2)))))
    assert (whole.step, rest.step) == (COUNTS[0], 1)
    assert whole.upper == rest.lower
    read = [load for part in statements(whole) for load in loads_of(part)]
    assert len(read) == COUNTS[0] + 2
    stored = [part for part in statements(whole) if isinstance(part, Store)]
    assert len(stored) == COUNTS[0]


def test_what_rows_compute_alike_is_computed_once() -> None:
    """Squares of neighbouring rows: of four rows, five squares."""
    square = [
        part
        for row in (0, 1)
        for part in (Let(f"a{row}", at(row)), Let(f"b{row}", call("mul", *(Ref(f"a{row}", X.dtype),) * 2)))
    ]
    total = call("add", Ref("b0", X.dtype), Ref("b1", X.dtype))
    whole, _ = loops_over_rows(jam_stencils(rows(*square, Let("c", total), Store(Y, (I, J), Ref("c", X.dtype)))))
    products = [part for part in statements(whole) if isinstance(part, Let) and "mul" in str(part.value)]
    assert len(products) == COUNTS[0] + 1


@pytest.mark.parametrize(
    "nest",
    [
        rows(*sums(at(0), at(0, 1), at(0, 2))),
        rows(Let("v", Load(X, (Num(0), J))), Store(Y, (I, J), call("add", Ref("v", X.dtype), at(0)))),
        rows(*sums(at(0), at(1)), Let("w", Load(Y, (ix.add(I, Num(1)), J))), Store(Z, (I, J), Ref("w", X.dtype))),
        rows(*sums(at(0), at(1))[:-1], Store(Y, (Num(0), J), at(0))),
        rows(*sums(at(0), at(1))[:-1], Store(Y, (Num(0), ix.add(I, J)), at(0))),
        rows(*sums(at(0), at(1)), Store(Y, (ix.add(I, Num(1)), J), at(0))),
        rows(*sums(at(0), at(1)), Accumulate(Z, (I, J), "add", at(0))),
        rows(*sums(at(0), at(1)), kind=LoopKind.PARALLEL),
        rows(*sums(at(0), at(1)), extent=1),
        rows(*sums(*(at(k % 3, k) for k in range(MOST // 2)))),
    ],
    ids=[
        "shifts along rows alone",
        "one row for all",
        "reads what another row stores",
        "rows store to one",
        "rows store across",
        "two rows store to one",
        "sums",
        "parallel rows",
        "one row",
        "long rows",
    ],
)
def test_other_loops_stay(nest: Nest) -> None:
    assert jam_stencils(nest) == nest


@pytest.mark.parametrize("extent", [5, 6, 7, 9, 35])
def test_results_of_any_number_of_rows_are_those_of_one_at_a_time(extent: int) -> None:
    """A blur along rows that is no tile: as in numpy, in the order that it is written in."""
    writer, x = Writer(), tensor("x", extent + 2, 37)
    parts = [
        writer.op("StridedSlice", x, shape=(extent, 37), begin=(k, 0), end=(k + extent, 37), strides=(1, 1))
        for k in range(3)
    ]
    total = writer.op("Add", writer.op("Add", parts[0], parts[1], shape=(extent, 37)), parts[2], shape=(extent, 37))
    root = writer.op("Sqrt", writer.op("Abs", total, shape=(extent, 37)), shape=(extent, 37))
    value = np.random.default_rng(extent).standard_normal((extent + 2, 37)).astype(np.float32)
    expected = np.sqrt(np.abs((value[:-2] + value[1:-1]) + value[2:]))
    for target in ("cpu", "python"):
        kernel = compile(writer.desc("blur", (x,), root), target)
        np.testing.assert_array_equal(kernel(value)[0], expected)
