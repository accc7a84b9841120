"""What the variables of loops are, as far as their bounds and steps say."""

from __future__ import annotations

import pytest

from kernelgen.nest.index import add, minimum, modulo, multiply, subtract
from kernelgen.nest.nodes import Block, For, Index, Num, Var
from kernelgen.nest.ranges import Range, range_of, values_in

BLOCK = For("b", Num(0), Num(21), Block())


def inside(lower: Index, upper: Index, step: int) -> For:
    return For("i", lower, upper, Block(), step=step)


@pytest.mark.parametrize(
    ("loop", "turn", "wanted"),
    [
        (inside(Num(0), Num(20), 8), None, Range(0, 16)),
        (inside(Num(0), Num(20), 1), None, Range(0, 19)),
        (inside(multiply(Var("b"), Num(72)), minimum(Num(1496), multiply(add(Var("b"), Num(1)), Num(72))), 8), 20,
         Range(1440, 1488)),
        (inside(multiply(Var("b"), Num(72)), Num(1496), 8), None, Range(0, 1495)),
        (inside(Var("n"), Num(20), 8), None, Range(None, 19)),
    ],
    ids=["whole steps", "single steps", "from a turn that is known", "from one that is not", "from an unknown number"],
)  # fmt: skip
def test_the_last_value_is_whole_steps_from_a_first_one_that_is_known(
    loop: For, turn: int | None, wanted: Range
) -> None:
    known = {} if turn is None else {"b": Range(turn, turn)}
    assert values_in((BLOCK, loop), known)["i"] == wanted


def test_what_whole_blocks_leave_of_an_open_number_is_less_than_a_block() -> None:
    """isl writes where it begins as the number less what is left of it."""
    begin = add(multiply(modulo(Var("n"), Num(4)), Num(-1)), Var("n"))
    assert range_of(subtract(Var("n"), begin), {}) == Range(0, 3)
