"""Loops are taken apart where a clamp begins or ceases to matter: same elements, regular places in every piece."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from nests import I, J, block, buffer, local, loop, output

from kernelgen.driver import compile
from kernelgen.nest.index import add, floor_divide, maximum, minimum, modulo, multiply
from kernelgen.nest.nodes import (
    Alloc,
    Call,
    Compare,
    For,
    If,
    Index,
    IndexValue,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Statement,
    Store,
)
from kernelgen.nest.text import show
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import statements
from kernelgen.samples.inputs import draw
from kernelgen.semantics import reference
from kernelgen.tensor.dtypes import BOOL, INT64
from kernelgen.transforms.common.split_index_sets import peel

X, Y = buffer("x", 10), output("y", 14)


def clamped(place: Index) -> Index:
    return minimum(maximum(place, Num(0)), Num(9))


def copying(place: Index, *before: Statement, kind: LoopKind = LoopKind.VECTOR) -> Nest:
    body = (*before, Let("v", Load(X, (place,))), Store(Y, (J,), Ref("v", X.dtype)))
    return Nest("case", (), (X, Y), block(loop(J, 14, *body, kind=kind)))


def bounds(nest: Nest) -> list[tuple[Index, Index]]:
    return [(part.lower, part.upper) for part in statements(nest.body) if isinstance(part, For)]


def ranges(*ends: int) -> list[tuple[Index, Index]]:
    return [(Num(low), Num(high)) for low, high in itertools.pairwise(ends)]


def test_a_window_has_a_border_at_each_side() -> None:
    peeled = peel(copying(clamped(add(J, Num(-2)))))
    verify(peeled)
    assert bounds(peeled) == ranges(0, 2, 12, 14)
    text = show(peeled)
    assert "x[0]" in text
    assert "x[9]" in text
    assert "min" not in text


def test_places_that_move_by_two_end_earlier() -> None:
    peeled = peel(copying(clamped(add(multiply(J, Num(2)), Num(-3)))))
    verify(peeled)
    assert bounds(peeled) == ranges(0, 2, 7, 14)


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.ROWS, LoopKind.VECTOR])
def test_the_last_of_two_digits_ends_where_the_place_does(kind: LoopKind) -> None:
    place, out = add(multiply(I, Num(4)), J), output("out", 4, 4)
    body = (Let("v", Load(X, (clamped(place),))), Store(out, (I, J), Ref("v", X.dtype)))
    nest = Nest("case", (), (X, out), block(loop(I, 4, loop(J, 4, *body, kind=kind), kind=LoopKind.SERIAL)))
    peeled = peel(nest)
    verify(peeled)
    digits = [*ranges(0, 2), *ranges(0, 4), *ranges(2, 3), *ranges(0, 2, 4), *ranges(3, 4), *ranges(0, 4)]
    assert bounds(peeled) == digits
    assert "min" not in show(peeled)
    assert "max" not in show(peeled)


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_comparison_has_one_outcome_in_each_piece(name: str, swapped: bool) -> None:
    place, number = IndexValue(multiply(J, Num(3)), INT64), Literal(12, INT64)
    condition = Call(name, (number, place) if swapped else (place, number), BOOL)
    chosen = Call("select", (condition, Load(X, (Num(0),)), Load(X, (Num(1),))), X.dtype)
    peeled = peel(Nest("case", (), (X, Y), block(loop(J, 14, Store(Y, (J,), chosen), kind=LoopKind.VECTOR))))
    verify(peeled)
    equals_first = name in ("less_equal", "greater_equal")
    below_first = (name.startswith("less")) != swapped
    first = 5 if equals_first == below_first else 4
    assert bounds(peeled) == ranges(0, first, 14)
    assert "select" not in show(peeled)
    assert show(peeled).index("x[0]" if below_first else "x[1]") < show(peeled).index("x[1]" if below_first else "x[0]")


def test_lanes_end_where_a_digit_carries() -> None:
    grid = buffer("grid", 2, 8)
    body = (Let("v", Load(grid, (floor_divide(J, Num(8)), modulo(J, Num(8))))), Store(Y, (J,), Ref("v", X.dtype)))
    lanes, serial = (
        Nest("case", (), (grid, Y), block(loop(J, 14, *body, kind=kind))) for kind in (LoopKind.VECTOR, LoopKind.SERIAL)
    )
    peeled = peel(lanes)
    verify(peeled)
    assert bounds(peeled) == ranges(0, 8, 14)
    assert "grid[1, j - 8]" in show(peeled)
    assert peel(serial) == serial


@pytest.mark.parametrize(
    "nest",
    [
        copying(clamped(I), kind=LoopKind.SERIAL),
        copying(clamped(J), kind=LoopKind.BLOCK),
        copying(clamped(J), Alloc(local("t"))),
    ],
    ids=["another loop's place", "a clamp in a loop of cores", "a loop that allocates"],
)
def test_others_stay_in_one(nest: Nest) -> None:
    assert bounds(peel(nest)) == bounds(nest)


def test_a_core_takes_the_branch_of_its_iteration() -> None:
    inside = Call("less", (IndexValue(J, INT64), Literal(10, INT64)), BOOL)
    chosen = Call("select", (inside, Load(X, (clamped(J),)), Literal(0.0, X.dtype)), X.dtype)
    peeled = peel(Nest("case", (), (X, Y), block(loop(J, 14, Store(Y, (J,), chosen), kind=LoopKind.BLOCK))))
    verify(peeled)
    (cores,) = peeled.body.statements
    assert isinstance(cores, For)
    assert cores.body.statements == (
        If((Compare("<", J, Num(10)),), block(Store(Y, (J,), Load(X, (J,))))),
        If((Compare("<=", Num(10), J),), block(Store(Y, (J,), Literal(0.0, X.dtype)))),
    )


def test_rows_of_a_padded_picture_are_copied_as_one_stretch() -> None:
    w, x = Writer(), tensor("x", 24, 20, 20, 16)
    padded = w.op("PadAkg", x, shape=(24, 21, 21, 16), head=(0, 0, 0, 0), tail=(0, 1, 1, 0), pad_val=0.0)
    desc = w.desc("padded", (x,), padded)
    kernel = compile(desc, "ascend")
    assert "Select(" not in kernel.source
    assert "DataCopyExtParams{20, 64, 0, 0, 0}" in kernel.source  # rows of 16 elements, no gap between them
    (found,), (wanted,) = kernel(*draw(desc)), reference(desc)(*draw(desc))
    np.testing.assert_array_equal(found, wanted)


def test_padding_on_ascend_is_right_and_has_regular_copies() -> None:
    w, x = Writer(), tensor("x", 6, 20)
    padded = w.op("PadAkg", x, shape=(9, 25), head=(1, 2), tail=(2, 3), pad_val=1.5)
    desc = w.desc("padded", (x,), padded)
    kernel = compile(desc, "ascend")
    assert any("_1" in part.name for part in statements(kernel.nest.body) if isinstance(part, Let))
    (found,), (wanted,) = kernel(*draw(desc)), reference(desc)(*draw(desc))
    np.testing.assert_array_equal(found, wanted)
