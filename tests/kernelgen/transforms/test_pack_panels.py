"""Panels of matrix products: what they hold, in which pieces, and when there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from nests import I, J, block, buffer, call, loop, output, run

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Call,
    Expr,
    For,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.nodes import Let as Binding
from kernelgen.nest.text import show_statement
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan
from kernelgen.tensor.dims import Dim, sym, symbols_of
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32
from kernelgen.transforms.common.initialize_reductions import initialize
from kernelgen.transforms.cpu.pack_panels import LEAST_BLOCKS, LEAST_TURNED, MAX_NODES, MAX_PRODUCTS, pack


def packed(nest: Nest) -> Nest:
    return pack(nest, PANEL)


K = Var("k")
COLUMNS = 4
ROWS = 2 * LEAST_BLOCKS
PANEL = CpuPlan().panel


def product(
    depth: Dim = 9,
    rows: Dim = ROWS,
    value: Expr | None = None,
    target: tuple[ix.Index, ...] | None = None,
    more: tuple[Statement, ...] = (),
    kind: LoopKind = LoopKind.SERIAL,
) -> Nest:
    """``y[i, 3 + j] += a[i, k] * b[k, 3 + j]`` in blocks of two rows and four columns, with their starting values."""
    a, b, y = buffer("a", rows, depth), buffer("b", depth, 3 + COLUMNS), output("y", rows, 3 + COLUMNS)
    symbols = symbols_of((*a.shape, *b.shape))

    def term(row: ix.Index) -> Accumulate:
        found = value or call("mul", Load(a, (row, K)), Load(b, (K, J)))
        return Accumulate(y, (row, J) if target is None else target, "add", found)

    columns = replace(loop(J, COLUMNS, term(I), term(ix.add(I, Num(1))), *more), lower=Num(3), upper=Num(3 + COLUMNS))
    blocks = replace(loop(I, rows, loop(K, depth, columns, kind=LoopKind.SERIAL), kind=kind), step=2)
    return initialize(Nest("case", symbols, (a, b, y), block(blocks)))


def text_of(nest: Nest) -> str:
    return "\n".join(show_statement(part) for part in nest.body.statements)


def test_row_blocks_read_one_panel() -> None:
    nest = packed(product())
    verify(nest)
    assert (
        text_of(nest)
        == """\
alloc panel0: f32[9, 4]
for k in 0..9 {
  vector for j in 0..4 {
    panel0[k, j] = b[k, j + 3]
  }
}
for i in 0..8 step 2 {
  vector for j in 0..4 {
    y[i, j + 3] = 0.0
  }
  vector for j in 0..4 {
    y[i + 1, j + 3] = 0.0
  }
  for k in 0..9 {
    vector for j in 0..4 {
      let panel0_here: f32 = panel0[k, j]
      y[i, j + 3] += a[i, k] * panel0_here
      y[i + 1, j + 3] += a[i + 1, k] * panel0_here
    }
  }
}"""
    )


def pieces(nest: Nest) -> Iterator[For]:
    return (s for s in statements(nest.body) if isinstance(s, For) and s.var == "k_piece")


def test_a_long_sum_is_taken_in_pieces_of_about_the_same_size() -> None:
    room = PANEL // (4 * COLUMNS)
    (piece,) = pieces(packed(product(depth=room + 2)))
    assert piece.step == room // 2 + 1
    assert not list(pieces(packed(product(depth=room))))


def test_a_sum_of_unknown_length_is_taken_in_whole_panels() -> None:
    (piece,) = pieces(packed(product(depth=sym("N"))))
    assert piece.step == PANEL // (4 * COLUMNS)


def half_product() -> Nest:
    """The product of 16-bit numbers, through bindings."""
    a, b = (buffer(name, *shape, dtype=FLOAT16) for name, shape in (("a", (ROWS, 9)), ("b", (9, 4))))
    y = output("y", ROWS, 4)
    body: list[Statement] = []
    for number in range(2):
        row = ix.add(I, Num(number))
        loaded = (Binding(f"v{number}", Load(a, (row, K))), Binding(f"w{number}", Load(b, (K, J))))
        factors = tuple(Call("cast", (Ref(each.name, FLOAT16),), FLOAT32) for each in loaded)
        body += [*loaded, Accumulate(y, (row, J), "add", call("mul", *factors))]
    columns = loop(J, 4, *body)
    blocks = replace(loop(I, ROWS, loop(K, 9, columns, kind=LoopKind.SERIAL), kind=LoopKind.SERIAL), step=2)
    return initialize(Nest("half", (), (a, b, y), block(blocks)))


def test_what_is_computed_from_one_operand_is_computed_once() -> None:
    nest = packed(half_product())
    verify(nest)
    text = text_of(nest)
    assert "panel0[k, j] = cast<f32>(b[k, j])" in text
    assert "vector for k in 0..9 {\n    panel1[k] = cast<f32>(a[i, k])\n    panel2[k] = cast<f32>(a[i + 1, k])" in text
    assert "y[i, j] += panel1[k] * panel0_here" in text


def test_an_operand_that_lies_along_the_sum_is_transposed() -> None:
    b = buffer("b", 3 + COLUMNS, 9)
    nest = product(value=call("mul", Load(buffer("a", ROWS, 9), (I, K)), Load(b, (J, K))))
    text = text_of(packed(nest))
    assert "interleave for k in 0..9 {\n  vector for j in 0..4 {\n    panel0[k, j] = b[j + 3, k]" in text


def turned(rows: int) -> Nest:
    b = buffer("b", 3 + COLUMNS, 9)
    return product(rows=rows, value=call("mul", Load(buffer("a", rows, 9), (I, K)), Load(b, (J, K))))


def test_fewer_blocks_make_a_panel_worth_its_copy_where_it_turns_round() -> None:
    assert packed(turned(2 * LEAST_TURNED)) != turned(2 * LEAST_TURNED)
    assert packed(product(rows=2 * LEAST_TURNED)) == product(rows=2 * LEAST_TURNED)
    assert packed(turned(2 * LEAST_TURNED - 2)) == turned(2 * LEAST_TURNED - 2)


def open_rows(start: ix.Index) -> Nest:
    """The product of rows from a ``start`` on to an end that is open."""
    nest, rows = product(rows=sym("S")), Var("S")
    blocks = (replace(part, lower=start, upper=rows) for part in nest.body.statements if isinstance(part, For))
    return replace(nest, body=Block(tuple(blocks)))


def test_where_rows_are_open_nothing_is_packed_for_none() -> None:
    text = text_of(packed(open_rows(Num(0))))
    assert text.startswith("if 0 < S {\n  alloc panel0: f32[9, 4]\n  for k in 0..9 {")


def test_what_blocks_leave_of_open_rows_is_read_where_it_lies() -> None:
    rest = ix.modulo(Var("S"), Num(2 * LEAST_TURNED))
    left = open_rows(ix.add(ix.multiply(rest, Num(-1)), Var("S")))
    assert packed(left) == left


@pytest.mark.parametrize("depth", [8, 9, 40, PANEL // (4 * COLUMNS) + 3])
def test_packed_products_are_right(depth: int) -> None:
    random = np.random.default_rng(depth)
    a = random.integers(-4, 5, (ROWS, depth)).astype(np.float32)
    b = random.integers(-4, 5, (depth, 3 + COLUMNS)).astype(np.float32)
    y = np.empty((ROWS, 3 + COLUMNS), np.float32)
    run(packed(product(depth)), a, b, y)
    np.testing.assert_array_equal(y[:, 3:], (a @ b)[:, 3:])


def tall(expr: Expr) -> Expr:
    for _ in range(MAX_NODES):
        expr = call("neg", expr)
    return expr


A, B, Y = buffer("a", ROWS, 9), buffer("b", 9, 3 + COLUMNS), output("y", ROWS, 3 + COLUMNS)
UNPACKED = {
    "few rows": product(rows=ROWS - 2),
    "a short sum": product(depth=7),
    "parallel rows": product(kind=LoopKind.PARALLEL),
    "rows meet in one element": product(target=(Num(0), J)),
    "the target is read": product(value=call("mul", Load(Y, (I, J)), Load(B, (K, J)))),
    "nothing is the same for all rows": product(value=Load(A, (I, K))),
    "a large term": product(value=call("mul", Load(A, (I, K)), tall(Load(B, (K, J))))),
    "a store beside": product(more=(Store(Y, (I, J), Load(B, (K, J))),)),
}


@pytest.mark.parametrize("name", UNPACKED)
def test_other_loops_stay(name: str) -> None:
    assert packed(UNPACKED[name]) == UNPACKED[name]


def test_panels_on_the_stack_are_few() -> None:
    one = product()
    many = replace(one, body=Block(one.body.statements * (MAX_PRODUCTS + 1)))
    assert sum(isinstance(s, Alloc) for s in statements(packed(many).body)) == MAX_PRODUCTS


def test_values_that_differ_get_panels_of_their_own() -> None:
    a, b, y = buffer("a", ROWS, 9), buffer("b", 9, 5), output("y", ROWS, 4)

    def term(number: int) -> Accumulate:
        place = Load(b, (K, ix.add(J, Num(number))))
        return Accumulate(
            y, (ix.add(I, Num(number)), J), "add", call("mul", Load(a, (ix.add(I, Num(number)), K)), place)
        )

    columns = loop(J, 4, term(0), term(1))
    blocks = replace(loop(I, ROWS, loop(K, 9, columns, kind=LoopKind.SERIAL), kind=LoopKind.SERIAL), step=2)
    nest = packed(initialize(Nest("two", (), (a, b, y), block(blocks))))
    panels: list[Buffer] = [s.buffer for s in statements(nest.body) if isinstance(s, Alloc)]
    assert [panel.name for panel in panels] == ["panel0", "panel1"]
