"""What each pass on nests does, on hand-written nests small enough to read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nests import I, J, block, buffer, call, local, loop, output

from kernelgen.errors import NestError
from kernelgen.nest import index as ix
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Compare,
    For,
    If,
    Index,
    IndexBinary,
    IndexOp,
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
    Var,
)
from kernelgen.nest.walk import statements
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.common.array_contraction import LOCAL_BYTES, contract
from kernelgen.transforms.common.hoist_invariants import hoist
from kernelgen.transforms.common.initialize_reductions import initialize
from kernelgen.transforms.common.merge_accumulations import merge_accumulations
from kernelgen.transforms.common.reuse_output_storage import share
from kernelgen.transforms.common.scalarize import scalarize

K = Var("k")
X, Y = buffer("x", 4, 8), output("y", 4, 8)
ROWS, COLUMNS = output("rows", 4), output("columns", 8)
ELEMENT = Load(X, (I, J))


def nest(*body: Statement, buffers: tuple = (X, Y)) -> Nest:
    return Nest("case", (), buffers, block(*body))


def rows(*body: Statement, kind: LoopKind = LoopKind.PARALLEL) -> Statement:
    return loop(I, 4, *body, kind=kind)


def columns(*body: Statement) -> Statement:
    return loop(J, 8, *body)


def kinds(root: Block) -> list[str]:
    return [type(s).__name__ for s in statements(root) if not isinstance(s, Block)]


# ---------------------------------------------------------------- initialize


def test_a_row_sum_starts_inside_the_row_loop() -> None:
    before = nest(rows(columns(Accumulate(ROWS, (I,), "add", ELEMENT))))
    zero = Store(ROWS, (I,), Literal(0.0, FLOAT32))
    assert initialize(before).body == block(rows(zero, columns(Accumulate(ROWS, (I,), "add", ELEMENT))))


def test_a_column_sum_starts_before_the_row_loop_over_all_columns() -> None:
    total = Accumulate(COLUMNS, (J,), "maximum", ELEMENT)
    after = initialize(nest(rows(columns(total), kind=LoopKind.SERIAL))).body
    lowest = Store(COLUMNS, (J,), Literal(float("-inf"), FLOAT32))
    assert after == block(columns(lowest), rows(columns(total), kind=LoopKind.SERIAL))


def test_unrolled_rows_start_their_target_once() -> None:
    total = Accumulate(COLUMNS, (J,), "add", ELEMENT)
    after = initialize(nest(rows(columns(total, total), kind=LoopKind.SERIAL))).body
    zero = Store(COLUMNS, (J,), Literal(0.0, FLOAT32))
    assert after == block(columns(zero), rows(columns(total, total), kind=LoopKind.SERIAL))


def test_a_condition_on_rows_guards_the_start_of_their_sums_and_one_on_terms_does_not() -> None:
    of_rows, of_terms = Compare("<", I, Num(3)), Compare("<", J, Num(5))
    total = If((of_rows, of_terms), block(Accumulate(ROWS, (I,), "add", ELEMENT)))
    zero = If((of_rows,), block(Store(ROWS, (I,), Literal(0.0, FLOAT32))))
    assert initialize(nest(rows(columns(total)))).body == block(rows(zero, columns(total)))


def test_a_start_never_leaves_its_buffer_for_want_of_a_condition() -> None:
    inside = Compare("<=", IndexBinary(IndexOp.ADD, I, J), Num(3))
    total = If((inside,), block(Accumulate(output("few", 3), (I,), "add", ELEMENT)))
    with pytest.raises(NestError, match="under a guard"):
        initialize(nest(rows(columns(total))))


def test_a_start_fills_an_axis_of_any_length_that_its_loop_covers() -> None:
    """Terms under a condition: a target of one loop, as long as a symbol says."""
    n = sym("N")
    total = Buffer("total", FLOAT32, (n,), Space.OUTPUT)
    few = Compare("<=", IndexBinary(IndexOp.ADD, I, J), Num(3))
    sums = If((few,), block(Accumulate(total, (I,), "add", ELEMENT)))

    def over(upper: Index) -> Nest:
        return nest(For("i", Num(0), upper, block(columns(sums))))

    zero = Store(total, (I,), Literal(0.0, FLOAT32))
    assert initialize(over(Var("N"))).body.statements[0] == For("i", Num(0), Var("N"), block(zero, columns(sums)))
    with pytest.raises(NestError, match="under a guard"):
        initialize(over(Num(4)))


def test_neutral_elements_change_nothing() -> None:
    assert neutral_element("mul", FLOAT32).value == 1.0
    assert neutral_element("minimum", FLOAT32).value == float("inf")


def test_a_loop_of_which_a_condition_leaves_one_turn_is_no_reduction() -> None:
    """The target is of the last turn alone: it starts there, inside of the condition."""
    total = output("total", 8)
    sum_ = loop(J, 8, Accumulate(total, (Num(7),), "add", ELEMENT))
    before = nest(rows(If((Compare("<", Num(2), I),), block(sum_)), kind=LoopKind.SERIAL), buffers=(X, total))
    start = Store(total, (Num(7),), neutral_element("add", FLOAT32))
    assert initialize(before).body == block(
        rows(If((Compare("<", Num(2), I),), block(start, sum_)), kind=LoopKind.SERIAL)
    )


def test_a_loop_of_which_a_condition_leaves_two_turns_is_a_reduction() -> None:
    total = output("total", 8)
    sum_ = loop(J, 8, Accumulate(total, (Num(7),), "add", ELEMENT))
    before = nest(rows(If((Compare("<", Num(1), I),), block(sum_)), kind=LoopKind.SERIAL), buffers=(X, total))
    first = initialize(before).body.statements[0]
    assert first == Store(total, (Num(7),), neutral_element("add", FLOAT32))


@pytest.mark.parametrize("place", [Num(3), J], ids=["one element", "all elements"])
def test_further_terms_under_a_condition_are_added_to_what_every_turn_adds(place: Index) -> None:
    """The condition leaves one turn, but the other turns add to the same element."""
    total = output("total", 8)
    every, more = (loop(J, 8, Accumulate(total, (place,), "add", ELEMENT)) for _ in range(2))
    guarded = If((Compare("==", I, Num(0)),), block(more))
    made = initialize(nest(rows(every, guarded, kind=LoopKind.SERIAL), buffers=(X, total)))
    (loops,) = [s for s in made.body.statements if isinstance(s, For) and s.var == "i"]
    assert not [s for s in statements(loops.body) if isinstance(s, Store)]


def test_a_further_term_of_an_element_of_the_only_turn_is_added_to_the_others() -> None:
    sums, first = output("sums", 8), Compare("==", I, Num(0))
    each = loop(J, 8, Accumulate(sums, (I,), "add", ELEMENT))
    more = If((first,), block(loop(J, 8, Accumulate(sums, (Num(0),), "add", ELEMENT))))
    made = initialize(nest(rows(each, more, kind=LoopKind.SERIAL), buffers=(X, sums)))
    guarded = [s for s in statements(made.body) if isinstance(s, If)]
    assert not [s for part in guarded for s in statements(part.body) if isinstance(s, Store)]


# ---------------------------------------------------------------- contract


def test_a_temporary_used_within_a_row_becomes_a_local_row() -> None:
    e = buffer("e", 4, 8, space=Space.WORKSPACE)
    body = rows(columns(Store(e, (I, J), ELEMENT)), columns(Store(Y, (I, J), Load(e, (I, J)))))
    after = contract(nest(body, buffers=(X, Y, e)))
    small = local("e", 8)
    assert after.buffers == (X, Y)
    assert after.body == block(
        rows(Alloc(small), columns(Store(small, (J,), ELEMENT)), columns(Store(Y, (I, J), Load(small, (J,)))))
    )


def blocks(*body: Statement) -> Statement:
    return loop(K, 2, *body, kind=LoopKind.SERIAL)


def in_block(*body: Statement) -> Statement:
    start = ix.multiply(K, Num(4))
    return replace(
        loop(I, 0, *body, kind=LoopKind.SERIAL), lower=start, upper=ix.minimum(Num(7), ix.add(start, Num(4)))
    )


def test_a_temporary_used_within_a_block_of_rows_becomes_a_block() -> None:
    """A row beside the loops that a condition puts into the last block is in it too."""
    e, x = buffer("e", 8, 8, space=Space.WORKSPACE), buffer("x", 8, 8)
    last = If((Compare("==", K, Num(1)),), block(columns(Store(e, (Num(7), J), Load(x, (Num(7), J))))))
    body = blocks(
        in_block(columns(Store(e, (I, J), Load(x, (I, J))))), last, in_block(columns(Store(x, (I, J), Load(e, (I, J)))))
    )
    (alloc,) = [s for s in statements(contract(nest(body, buffers=(x, e))).body) if isinstance(s, Alloc)]
    assert alloc.buffer.shape == (4, 8)


@pytest.mark.parametrize(
    "row", [Num(7), Num(3), ix.add(I, Num(1))], ids=["of another block", "of the first", "the next"]
)
def test_a_temporary_touched_beside_a_block_keeps_its_rows(row: ix.Index) -> None:
    e, x = buffer("e", 9, 8, space=Space.WORKSPACE), buffer("x", 9, 8)
    body = blocks(
        in_block(columns(Store(e, (I, J), Load(x, (I, J))))), in_block(columns(Store(x, (I, J), Load(e, (row, J)))))
    )
    found = [s.buffer.shape for s in statements(contract(nest(body, buffers=(x, e))).body) if isinstance(s, Alloc)]
    assert found in ([], [e.shape])


def test_a_temporary_that_crosses_parallel_loops_stays() -> None:
    e = buffer("e", 4, 8, space=Space.WORKSPACE)
    before = nest(
        rows(columns(Store(e, (I, J), ELEMENT))),
        rows(columns(Store(Y, (I, J), Load(e, (I, J))))),
        buffers=(X, Y, e),
    )
    assert contract(before) == before


def test_a_temporary_too_large_for_a_stack_stays() -> None:
    wide = LOCAL_BYTES
    e = buffer("e", 4, wide, space=Space.WORKSPACE)
    before = nest(
        rows(columns(Store(e, (I, J), ELEMENT)), columns(Store(Y, (I, J), Load(e, (I, J))))), buffers=(X, Y, e)
    )
    assert contract(before) == before


def test_a_temporary_read_at_another_row_keeps_its_rows() -> None:
    e = buffer("e", 4, 8, space=Space.WORKSPACE)
    body = rows(columns(Store(e, (I, J), ELEMENT)), columns(Store(Y, (I, J), Load(e, (J, I)))), kind=LoopKind.SERIAL)
    (alloc,) = [s for s in statements(contract(nest(body, buffers=(X, Y, e))).body) if isinstance(s, Alloc)]
    assert alloc.buffer.shape == (4, 8)


# ---------------------------------------------------------------- share


def test_a_dead_temporary_lives_in_the_output() -> None:
    e = buffer("e", 4, 8, space=Space.WORKSPACE)
    body = rows(
        columns(Store(e, (I, J), ELEMENT)), columns(Let("v", Load(e, (I, J))), Store(Y, (I, J), Ref("v", FLOAT32)))
    )
    after = share(nest(body, buffers=(X, Y, e)))
    assert after.buffers == (X, Y)
    assert after.body == block(
        rows(
            columns(Store(Y, (I, J), ELEMENT)), columns(Let("v", Load(Y, (I, J))), Store(Y, (I, J), Ref("v", FLOAT32)))
        )
    )


def test_a_temporary_that_is_read_again_later_does_not() -> None:
    e = buffer("e", 4, 8, space=Space.WORKSPACE)
    again = columns(Accumulate(ROWS, (I,), "add", Load(e, (I, J))))
    use = columns(Let("v", Load(e, (I, J))), Store(Y, (I, J), Ref("v", FLOAT32)))
    body = rows(columns(Store(e, (I, J), ELEMENT)), use, again)
    before = nest(body, buffers=(X, Y, ROWS, e))
    assert share(before) == before


# ---------------------------------------------------------------- merge, scalarize, hoist


def test_accumulations_into_one_element_meet_in_registers() -> None:
    parts = [Let(f"v{k}", Load(X, (I, J))) for k in range(4)]
    sums = [Accumulate(COLUMNS, (J,), "add", Ref(f"v{k}", FLOAT32)) for k in range(4)]
    after = merge_accumulations(nest(columns(*parts, *sums))).body
    assert kinds(after) == ["For", *["Let"] * 7, "Accumulate"]


def test_products_that_are_held_are_added_one_by_one() -> None:
    """Each takes one instruction, with a sum of its own for what is the same in all columns."""
    held, factor = local("held", 8), Load(ROWS, (I,))
    sums = [Accumulate(held, (J,), "add", call("mul", factor, value)) for value in (ELEMENT, factor, ELEMENT, factor)]
    (merged,) = [s for s in statements(merge_accumulations(nest(columns(*sums))).body) if isinstance(s, Accumulate)]
    moving, fixed = call("mul", factor, ELEMENT), call("mul", factor, factor)
    assert merged.value == call("add", call("add", moving, moving), call("add", fixed, fixed))


def test_accumulations_with_a_read_between_stay_apart() -> None:
    total = Accumulate(COLUMNS, (J,), "add", ELEMENT)
    before = nest(columns(total, Let("v", Load(COLUMNS, (J,))), total))
    assert merge_accumulations(before) == before


def test_a_local_written_once_becomes_a_binding() -> None:
    t = local("t")
    after = scalarize(nest(columns(Alloc(t), Store(t, (), ELEMENT), Store(Y, (I, J), Load(t, ())))))
    assert after.body == block(columns(Let("t_value", ELEMENT), Store(Y, (I, J), Ref("t_value", FLOAT32))))


def test_a_local_that_is_accumulated_stays() -> None:
    t = local("t")
    before = nest(Alloc(t), Store(t, (), ELEMENT), columns(Accumulate(t, (), "add", ELEMENT)))
    assert scalarize(before) == before


def test_what_does_not_change_leaves_the_loop() -> None:
    mean = Let("m", Load(ROWS, (I,)))
    use = Store(Y, (I, J), call("sub", ELEMENT, Ref("m", FLOAT32)))
    after = hoist(nest(rows(columns(mean, use))))
    assert after.body == block(rows(mean, columns(use)))


def test_what_the_loop_writes_stays_in_it() -> None:
    before = nest(rows(columns(Let("m", Load(ROWS, (I,))), Store(ROWS, (I,), Ref("m", FLOAT32)))))
    assert hoist(before) == before


def test_nothing_leaves_a_parallel_loop() -> None:
    before = nest(rows(Let("m", Load(COLUMNS, ())), Store(ROWS, (I,), Ref("m", FLOAT32))))
    assert hoist(before) == before
