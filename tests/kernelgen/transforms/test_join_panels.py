"""Loops over prepared panels: which become one, which temporaries shrink to a piece, and what is asked for ahead."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from nests import block, buffer, call, output
from operator_kernels import one

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.kernel import Kernel
from kernelgen.nest import index as ix
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import (
    Alloc,
    Block,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Prefetch,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan, Plan, VectorUnit
from kernelgen.poly.grouping.row_blocks import dealt_length
from kernelgen.poly.model.register_cost import HANDED_BYTES, MOST_ROWS, BlockRules, block_for, rows_time
from kernelgen.tensor.dims import Dim, evaluate, sym
from kernelgen.tensor.dims import product as product_of
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.cpu.join_panels import join
from kernelgen.transforms.cpu.prefetching.panels import AHEAD_BYTES, prefetch

STEP, ROWS, COLUMNS = 4, 3, 16
X, Y = buffer("x", ROWS, COLUMNS), output("y", ROWS, COLUMNS)
T = Buffer("t", FLOAT32, (ROWS, COLUMNS), Space.WORKSPACE)
C, R = Var("c"), Var("r")


def panels(body: Statement, upper: int = COLUMNS, lower: int = 0, step: int = STEP) -> For:
    """Every row of one panel of columns after the other."""
    columns = For("v", C, ix.add(C, Num(step)), Block((body,)), LoopKind.VECTOR)
    rows = For("r", Num(0), Num(ROWS), Block((columns,)))
    return For("c", Num(lower), Num(upper), Block((rows,)), LoopKind.PARALLEL, step)


def nest(*parts: Statement) -> Nest:
    prepared = Nest("before", (), (), Block())
    return Nest("case", (), (X, Y, T), block(*parts), preparation=prepared)


V = Var("v")


def at(which: Buffer, column: ix.Index = V) -> Load:
    return Load(which, (R, column))


def put(which: Buffer, value: Expr, column: ix.Index = V) -> Store:
    return Store(which, (R, column), value)


ZERO = Literal(0.0, FLOAT32)


def test_a_producer_and_what_follows_in_its_panels_are_one_loop_with_a_temporary_of_one_piece() -> None:
    joined = join(nest(panels(put(T, at(X))), panels(put(Y, call("tanh", at(T))))))
    verify(replace(joined, preparation=None))
    assert len(joined.body.statements) == 1
    assert [b.name for b in joined.buffers] == ["x", "y"]
    locals_ = {
        part.buffer.shape for part in statements(joined.body) if isinstance(part, Store) and part.buffer.name == "t"
    }
    assert locals_ == {(ROWS, STEP)}


@pytest.mark.parametrize(
    "second",
    [
        panels(put(Y, at(T, ix.subtract(Num(COLUMNS - 1), V)))),
        panels(put(Y, at(T, Num(0)))),
        panels(put(Y, at(T)), step=2),
        panels(put(Y, at(T)), upper=COLUMNS - STEP),
    ],
    ids=["reads other panels", "reads one element of all", "other panels", "fewer panels"],
)
def test_loops_stay_apart_where_a_value_passes_between_panels(second: For) -> None:
    before = nest(panels(put(T, at(X))), second)
    assert join(before).body.statements == before.body.statements


def test_a_loop_moves_past_what_lies_apart_and_past_nothing_else() -> None:
    half = COLUMNS // 2
    first = panels(put(T, at(X)), upper=half)
    apart = panels(put(T, ZERO), lower=half)
    reader = panels(put(Y, at(T)), upper=half)
    assert len(join(nest(first, apart, reader)).body.statements) == 2
    in_between = panels(put(T, ZERO, ix.modulo(V, Num(half))), lower=half)
    assert len(join(nest(first, in_between, reader)).body.statements) == 3


def test_nests_without_preparation_stay_as_they_are() -> None:
    plain = replace(nest(panels(put(T, at(X))), panels(put(Y, at(T)))), preparation=None)
    assert join(plain) is plain


def fused(rows: Dim, columns: int) -> KernelDesc:
    w = Writer()
    a, b, c = tensor("a", rows, 40), tensor("b", 40, columns), tensor("c", columns)
    found = w.op("Add", w.op("MatMul", a, b, shape=(rows, columns)), c, shape=(rows, columns))
    return w.desc("fused", (a, b, c), w.op("Exp", found, shape=(rows, columns)))


@pytest.mark.parametrize("rows", [16, 21])
def test_a_product_with_what_follows_is_one_loop_over_panels_without_a_workspace(rows: int) -> None:
    kernel = compile(fused(rows, 96), constants=[1, 2])
    assert len(kernel.nest.body.statements) == 1
    assert not kernel.signature.workspaces


@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 33), (2, 300), (5, 17), (8, 48), (9, 100), (23, 127), (sym("N"), 96), (sym("N"), 21)]
)
def test_products_of_all_numbers_of_rows_and_columns_are_right(rows: Dim, columns: int) -> None:
    desc = one("MatMul", [("float32", (rows, 19)), ("float32", (19, columns))], [("float32", (rows, columns))])
    kernel = compile(desc, constants=[1])
    rng = np.random.default_rng(0)
    b = rng.standard_normal((19, columns), np.float32)
    for count in (rows,) if isinstance(rows, int) else (1, 3, 8, 21):
        a = rng.standard_normal((count, 19), np.float32)
        np.testing.assert_allclose(kernel(*kernel.call_inputs([a, b]))[0], a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_last", [True, False])
def test_a_loop_under_a_condition_joins_its_panels_and_holds_the_condition_inside(is_last: bool) -> None:
    first, other = panels(put(T, at(X))), panels(put(T, ZERO))
    guarded = If((Compare("<=", Num(4), Var("N")),), block(other))
    parts = (first, guarded) if is_last else (first, guarded, panels(put(Y, at(T))))
    joined = join(replace(nest(*parts), symbols=("N",)))
    verify(replace(joined, preparation=None))
    assert len(joined.body.statements) == 1
    (condition,) = [part for part in statements(joined.body) if isinstance(part, If)]
    assert condition.conditions == guarded.conditions


@pytest.mark.parametrize("columns", [96, 100])
def test_a_product_of_any_number_of_rows_needs_memory_for_one_panel_alone(columns: int) -> None:
    kernel = compile(fused(sym("N"), columns), plan=Plan(CpuPlan()), constants=[1, 2])
    whole = [
        part for part in statements(kernel.nest.body) if isinstance(part, Alloc) and part.buffer.shape[-1:] == (48,)
    ]
    assert whole
    assert columns % 48 or not kernel.signature.workspaces


TERMS, PANEL, LINE = 40, 48, 16


def hints_of(rows: Dim, step: int = 1) -> tuple[Prefetch, ...]:
    """What a product of so many turns over two panels asks for, whose sums take so many terms at once."""
    prepared = buffer("p", 2, TERMS, PANEL)
    columns = For("v", Num(0), Num(PANEL), block(put(Y, Load(prepared, (C, Var("k"), V)))), LoopKind.VECTOR)
    terms = For("k", Num(0), Num(TERMS), block(columns), step=step)
    loops = For("c", Num(0), Num(2), block(For("r", Num(0), ix.from_dim(rows), block(terms))))
    before = Nest("before", (), (replace(prepared, space=Space.OUTPUT),), Block())
    found = prefetch(Nest("case", (), (prepared, Y), block(loops), preparation=before), 1024)
    return tuple(part for part in statements(found.body) if isinstance(part, Prefetch))


def lines_of(hints: tuple[Prefetch, ...], turns: int, step: int = 1) -> set[int]:
    sizes = [{"c": 0, "r": row, "k": term} for row in range(turns) for term in range(0, TERMS, step)]
    return {extent(hint.place, each) // LINE for hint in hints for each in sizes}


@pytest.mark.parametrize("step", [1, 4])
def test_groups_of_terms_are_asked_for_as_a_stream(step: int) -> None:
    """Every line once, so far ahead of where it is read."""
    prepared = buffer("p", 2, 5, 8, PANEL)
    columns = For("v", Num(0), Num(PANEL), block(put(Y, Load(prepared, (C, Var("g"), Var("k"), V)))), LoopKind.VECTOR)
    terms = For("g", Num(0), Num(5), block(For("k", Num(0), Num(8), block(columns), step=step)))
    loops = For("c", Num(0), Num(2), block(terms))
    before = Nest("before", (), (replace(prepared, space=Space.OUTPUT),), Block())
    found = prefetch(Nest("case", (), (prepared, Y), block(loops), preparation=before), 1024)
    hints = [part for part in statements(found.body) if isinstance(part, Prefetch)]
    places = product(range(2), range(5), range(0, 8, step))
    asked = [extent(hint.place, {"c": c, "g": g, "k": k}) // LINE for c, g, k in places for hint in hints]
    ahead = AHEAD_BYTES // 4 // LINE
    assert sorted(asked) == [*range(ahead, ahead + 2 * 5 * 8 * PANEL // LINE)]


NEXT = set(range(TERMS * PANEL // LINE, 2 * TERMS * PANEL // LINE))


@pytest.mark.parametrize("step", [1, 8])
@pytest.mark.parametrize("turns", [2, 3, 8, 21])
def test_every_line_of_the_next_panel_is_asked_for(turns: int, step: int) -> None:
    assert lines_of(hints_of(turns, step), turns, step) >= NEXT


@pytest.mark.parametrize("step", [6, 7])
def test_no_place_of_the_next_panel_is_a_quotient(step: int) -> None:
    """Which would be computed in each term of the sums."""
    prepared = buffer("p", 2, TERMS, PANEL)
    columns = For("v", Num(0), Num(PANEL), block(put(Y, Load(prepared, (C, Var("k"), V)))), LoopKind.VECTOR)
    rows = For("r", Num(0), Num(16 * step), block(For("k", Num(0), Num(TERMS), block(columns))), step=step)
    before = Nest("before", (), (replace(prepared, space=Space.OUTPUT),), Block())
    loops = For("c", Num(0), Num(2), block(rows))
    found = prefetch(Nest("case", (), (prepared, Y), block(loops), preparation=before), 1024)
    (hint,) = (part for part in statements(found.body) if isinstance(part, Prefetch))
    assert ix.to_dim(hint.place) is not None
    asked = {
        extent(hint.place, {"c": 0, "r": row, "k": k}) // LINE
        for row in range(0, 16 * step, step)
        for k in range(TERMS)
    }
    assert asked <= NEXT
    assert len(NEXT - asked) <= 16 * step // LINE + 1


@pytest.mark.parametrize("blocks", [(3, 1), (7, 2), (4, 3)])
def test_loops_over_rows_of_images_share_the_next_panel_of_windows(blocks: tuple[int, int]) -> None:
    prepared = buffer("p", 2, 5, 8, PANEL)
    columns = For("v", Num(0), Num(PANEL), block(put(Y, Load(prepared, (C, Var("g"), Var("k"), V)))), LoopKind.VECTOR)
    terms = For("g", Num(0), Num(5), block(For("k", Num(0), Num(8), block(columns))))
    rows, width = blocks
    around = For("h", Num(0), Num(rows), block(For("r", Num(0), Num(7 * width), block(terms), step=7)))
    before = Nest("before", (), (replace(prepared, space=Space.OUTPUT),), Block())
    loops = For("c", Num(0), Num(2), block(around))
    found = prefetch(Nest("case", (), (prepared, Y), block(loops), preparation=before), 1024)
    hints = [part for part in statements(found.body) if isinstance(part, Prefetch)]
    places = product(range(rows), range(0, 7 * width, 7), range(5), range(8))
    asked = {
        extent(hint.place, {"c": 0, "h": h, "r": r, "g": g, "k": k}) // LINE for h, r, g, k in places for hint in hints
    }
    assert asked >= set(range(5 * 8 * PANEL // LINE, 2 * 5 * 8 * PANEL // LINE))


@pytest.mark.parametrize("panel", [0, 1])
def test_the_last_panel_of_a_product_is_followed_by_the_first_of_the_next_product(panel: int) -> None:
    prepared = buffer("p", 3, 2, TERMS, PANEL)
    columns = For("v", Num(0), Num(PANEL), block(put(Y, Load(prepared, (Var("b"), C, Var("k"), V)))), LoopKind.VECTOR)
    rows = For("r", Num(0), Num(49), block(For("k", Num(0), Num(TERMS), block(columns))), step=7)
    before = Nest("before", (), (replace(prepared, space=Space.OUTPUT),), Block())
    loops = For("b", Num(0), Num(3), block(For("c", Num(0), Num(2), block(rows))))
    found = prefetch(Nest("case", (), (prepared, Y), block(loops), preparation=before), 1024)
    hints = [part for part in statements(found.body) if isinstance(part, Prefetch)]
    places = list(product(range(0, 49, 7), range(TERMS)))
    asked = {extent(hint.place, {"b": 1, "c": panel, "r": r, "k": k}) // LINE for r, k in places for hint in hints}
    start = (2 + panel + 1) * TERMS * PANEL // LINE
    assert asked >= set(range(start, start + TERMS * PANEL // LINE))


@pytest.mark.parametrize("step", [1, 8])
@pytest.mark.parametrize("turns", [2, 3, 100])
def test_however_many_turns_there_are_no_panel_after_the_next_is_asked_for(turns: int, step: int) -> None:
    asked = lines_of(hints_of(sym("N"), step), turns, step)
    assert asked >= NEXT
    assert len(asked - NEXT) <= TERMS


@pytest.mark.parametrize("unit", [VectorUnit(32, 16), VectorUnit(16, 8)], ids=["32 registers", "16 registers"])
@pytest.mark.parametrize("rows", [1, 3, 8, 13, 197, sym("N")])
def test_blocks_fit_the_registers_and_the_product(rows: Dim, unit: VectorUnit) -> None:
    for columns in (10, 64, 1000, sym("C")):
        count, width = block_for(rows, columns, BlockRules(unit))
        vectors = width // unit.lanes
        assert count * vectors + vectors + 1 <= unit.registers
        assert 1 <= count <= (min(rows, MOST_ROWS) if isinstance(rows, int) else MOST_ROWS)


def test_sixteen_registers_hold_few_rows_of_a_block() -> None:
    """Each row costs them a register and an instruction for its element."""
    assert block_for(192, 768, BlockRules(VectorUnit(16, 8))) == (4, 24)
    assert block_for(98, 256, BlockRules(VectorUnit(16, 8), whole=True)) == (2, 32)
    assert block_for(192, 768, BlockRules(VectorUnit(32, 8)))[0] > 4


def test_loops_beside_each_other_may_share_the_name_of_a_variable() -> None:
    """The first one's rows go beyond those of the second, whose variable is called the same."""

    def shares(body: Statement, step: int) -> For:
        inner = For("r", C, ix.add(C, Num(8)), Block((body,)), LoopKind.SERIAL, step)
        return For("c", Num(0), Num(COLUMNS), Block((inner,)), LoopKind.PARALLEL, 8)

    def across(which: Buffer, value: Expr, ahead: int = 0) -> Store:
        return Store(which, (Num(0), ix.add(R, Num(ahead))), value)

    reader = shares(across(Y, Load(T, (Num(0), R))), 1)
    assert len(join(nest(shares(across(T, ZERO, 3), 4), reader)).body.statements) == 1
    beyond = shares(across(T, ZERO, 4), 4)
    assert len(join(nest(beyond, reader)).body.statements) == 2


def dealt(rows: int, columns: int, threads: int) -> Kernel:
    sizes = replace(CpuPlan(), threads=threads)
    return compile(fused(rows, columns), constants=[1, 2], plan=Plan(sizes))


@pytest.mark.parametrize("columns", [96, 100])
def test_rows_are_dealt_to_threads_and_what_follows_stays_in_their_panels(columns: int) -> None:
    kernel = dealt(128, columns, 2)
    (loop,) = kernel.nest.body.statements
    assert isinstance(loop, For)
    assert (loop.kind, loop.upper, loop.step) == (LoopKind.PARALLEL, Num(128), 64)
    assert not kernel.signature.workspaces
    held = [part.buffer.shape for part in statements(loop) if isinstance(part, Alloc) and len(part.buffer.shape) == 2]
    assert held
    assert {shape[0] for shape in held} == {64}
    assert columns % 48 or {shape[1] for shape in held} == {48}


@pytest.mark.parametrize("threads", [1, 2])
def test_results_of_a_panel_stay_in_the_first_cache_until_what_follows_has_read_them(threads: int) -> None:
    kernel = dealt(1500, 384, threads)
    shapes = [part.buffer.shape for part in statements(kernel.nest.body) if isinstance(part, Alloc)]
    (pieces,) = {shape for shape in shapes if len(shape) == 2}
    assert FLOAT32.itemsize * evaluate(product_of(pieces), {}) <= HANDED_BYTES


@pytest.mark.parametrize("columns", [9_604, 96 * 1000])
def test_no_call_takes_memory_for_whole_rows_of_a_share_that_no_cache_holds(columns: int) -> None:
    kernel = dealt(128, columns, 2)
    taken = [part.buffer.shape for part in statements(kernel.nest.body) if isinstance(part, Alloc)]
    assert {shape[-1] for shape in taken} <= {4, 16, 32, 48, 64}


@pytest.mark.parametrize(
    ("rows", "threads"), [(128, 1), (63, 2), (65, 2), (96, 4), (32, 2)], ids=lambda each: str(each)
)
def test_threads_take_columns_where_rows_are_few_or_not_to_be_dealt_evenly(rows: int, threads: int) -> None:
    loops = [part for part in dealt(rows, 96, threads).nest.body.statements if isinstance(part, For)]
    assert {loop.step for loop in loops} <= {48, 32, 16}


@pytest.mark.parametrize(("rows", "columns"), [(225, 16), (729, 32), (3025, 16), (1225, 48), (1225, 64)])
def test_rows_without_equal_shares_are_dealt_in_blocks_and_what_follows_stays_in_them(rows: int, columns: int) -> None:
    kernel = dealt(rows, columns, 2)
    (loop,) = kernel.nest.body.statements
    assert isinstance(loop, For)
    assert loop.kind is LoopKind.PARALLEL
    assert not kernel.signature.workspaces
    length = dealt_length(rows, columns, replace(CpuPlan(), threads=2))
    assert length is not None
    first = -(-rows // (2 * length)) * length
    assert first < 0.6 * rows


@pytest.mark.parametrize(("rows", "columns", "is_by_rows"), [(1225, 64, True), (169, 1000, False), (289, 768, False)])
def test_threads_read_less_of_what_is_larger(rows: int, columns: int, is_by_rows: bool) -> None:
    """Where multiplying takes equally long, rows are dealt if there are more of them than of columns, else panels are."""
    assert (dealt_length(rows, columns, replace(CpuPlan(), threads=2)) is not None) == is_by_rows


@pytest.mark.parametrize("columns", [192, 256, 320])
def test_panels_are_dealt_to_threads_evenly(columns: int) -> None:
    """Where they are not, one thread has a panel more than the other."""
    shared = rows_time(289, columns, VectorUnit(), 2)
    assert 1.9 < rows_time(289, columns, VectorUnit(), 1) / shared < 2.01


@pytest.mark.parametrize(("rows", "threads"), [(128, 2), (160, 4), (210, 3), (128, 1), (225, 2), (169, 4)])
@pytest.mark.parametrize("columns", [17, 96, 256, 300])
def test_products_whose_rows_are_dealt_are_right(rows: int, threads: int, columns: int) -> None:
    kernel = dealt(rows, columns, threads)
    rng = np.random.default_rng(0)
    shapes = ((rows, 40), (40, columns), (columns,))
    a, b, c = (rng.uniform(-0.3, 0.3, shape).astype(np.float32) for shape in shapes)
    np.testing.assert_allclose(kernel(*kernel.call_inputs([a, b, c]))[0], np.exp(a @ b + c), rtol=1e-4)


@pytest.mark.parametrize("share", range(32, 96, 7))
def test_blocks_of_a_share_leave_no_row_over(share: int) -> None:
    count, columns = block_for(share, 256, BlockRules(VectorUnit(), whole=True))
    assert share % count == 0 < columns


@pytest.mark.parametrize("rows", [2 * 13 * 13, 2 * 17 * 17, 2 * 197, 2 * 167])
def test_shares_of_rows_without_a_good_divisor_are_no_reason_for_blocks_of_single_rows(rows: int) -> None:
    kernel = compile(fused(rows, 96), plan=Plan(cpu=CpuPlan(threads=2)), constants=[1, 2])
    sums = [
        part for part in statements(kernel.nest.body) if isinstance(part, Alloc) and part.buffer.space is Space.LOCAL
    ]
    assert len({part.buffer.name for part in sums}) > 2
