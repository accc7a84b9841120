"""Loops that read a row again ask for a later one: each for one argument, a page ahead, of arrays that no cache holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nests import ZERO, I, J, block, buffer, loop, output

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Buffer,
    For,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Prefetch,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import statements
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.cpu.prefetching.hints import LARGE_BYTES, PAGE_BYTES
from kernelgen.transforms.cpu.prefetching.later_rows import SHORT_BYTES, prefetch_later_rows

COLUMNS = 768
ROWS = LARGE_BYTES // (COLUMNS * 4) + 1
X, R, W = buffer("x", ROWS, COLUMNS), buffer("r", ROWS, COLUMNS), buffer("w", ROWS, COLUMNS)
TOTAL, Y = output("total", ROWS), output("y", ROWS, COLUMNS)


def adds(*read: Buffer) -> For:
    """A vector loop that adds up rows of arguments."""
    return loop(J, COLUMNS, *(Accumulate(TOTAL, (I,), "add", Load(each, (I, J))) for each in read))


def stores(read: Buffer) -> For:
    return loop(J, COLUMNS, Store(Y, (I, J), Load(read, (I, J))))


def rows(
    *body: Statement, kind: LoopKind = LoopKind.PARALLEL, step: int = 1, arguments: tuple[Buffer, ...] = (X, R, W)
) -> Nest:
    start = Store(TOTAL, (I,), Literal(0.0, FLOAT32))
    over = replace(loop(I, ROWS, start, *body, kind=kind), step=step)
    return Nest("rows", (), (*arguments, TOTAL, Y), block(over))


def asked(nest: Nest) -> list[tuple[str, ...]]:
    """What each vector loop asks for."""
    made = prefetch_later_rows(nest)
    verify(made)
    loops = [part for part in statements(made.body) if isinstance(part, For) and part.kind is LoopKind.VECTOR]
    return [tuple(x.buffer.name for x in each.body.statements if isinstance(x, Prefetch)) for each in loops]


def test_what_was_read_is_asked_for_by_the_next_loop() -> None:
    assert asked(rows(adds(X), stores(X))) == [(), ("x",)]
    assert asked(rows(adds(X), stores(X), kind=LoopKind.SERIAL)) == [(), ("x",)]


def test_each_loop_behind_asks_for_one_argument() -> None:
    """Of three arguments two have a loop; what the last loop is the first to read has none."""
    assert asked(rows(adds(X, R, W), adds(X), stores(R))) == [(), ("x",), ("r",)]
    assert asked(rows(adds(X), adds(R), stores(R))) == [(), ("x",), ("r",)]
    assert asked(rows(adds(X), stores(R))) == [(), ("x",)]
    assert asked(rows(adds(X), adds(X), stores(R))) == [(), ("x",), ()]


def test_a_row_is_one_however_its_place_is_written() -> None:
    """Neighbours of a row are in it, and ``2 i`` is ``i + i``."""
    tall, wide = buffer("x", 2 * ROWS, COLUMNS), buffer("x", ROWS, COLUMNS + 1)
    for read, places in (
        (tall, [(ix.multiply(I, Num(2)), J), (ix.add(I, I), J)]),
        (wide, [(I, J), (I, ix.add(J, Num(1)))]),
    ):
        sums = loop(J, COLUMNS, *(Accumulate(TOTAL, (I,), "add", Load(read, place)) for place in places))
        assert asked(rows(sums, adds(R), stores(R), arguments=(read, R))) == [(), ("x",), ("r",)]


def test_the_first_loop_says_what_a_row_is() -> None:
    short = loop(J, COLUMNS - 1, Store(Y, (I, J), Load(X, (I, J))))
    assert asked(rows(adds(X), stores(X), short)) == [(), ("x",), ()]


@pytest.mark.parametrize("step", [1, 4])
def test_a_page_behind_the_same_place_of_the_next_row_is_asked_for(step: int) -> None:
    made = prefetch_later_rows(rows(adds(X), stores(X), step=step))
    (hint,) = (part for part in statements(made.body) if isinstance(part, Prefetch))
    place = ix.substitute(hint.place, {"i": Num(3), "j": Num(5)})
    assert place == Num((3 + step) * COLUMNS + 5 + PAGE_BYTES // 4)
    assert hint.level == 2
    *_, last = (part for part in statements(made.body) if isinstance(part, For))
    assert last.body.statements[0] is hint


@pytest.mark.parametrize(("columns", "level"), [(SHORT_BYTES // 4, 1), (SHORT_BYTES // 4 + 1, 2)])
def test_the_first_cache_takes_short_rows(columns: int, level: int) -> None:
    x, y = buffer("x", ROWS * 2, columns), output("y", ROWS * 2, columns)
    adding = loop(J, columns, Accumulate(TOTAL, (I,), "add", Load(x, (I, J))))
    storing = loop(J, columns, Store(y, (I, J), Load(x, (I, J))))
    over = replace(loop(I, ROWS, adding, storing), kind=LoopKind.PARALLEL)
    made = prefetch_later_rows(Nest("rows", (), (x, TOTAL, y), block(over)))
    assert [part.level for part in statements(made.body) if isinstance(part, Prefetch)] == [level]


SMALL = buffer("x", 8, COLUMNS)
LONG = buffer("x", ROWS, 2 * COLUMNS)
DOUBLE = ix.multiply(J, Num(2))


@pytest.mark.parametrize(
    "nest",
    [
        rows(stores(X)),
        rows(adds(X), stores(X), kind=LoopKind.UNROLL),
        rows(loop(J, COLUMNS, Accumulate(TOTAL, (I,), "add", Load(X, (ZERO, J)))), stores(R)),
        rows(loop(J, COLUMNS, Accumulate(TOTAL, (I,), "add", Load(LONG, (I, DOUBLE)))), stores(R), arguments=(LONG, R)),
        rows(*(replace(each, kind=LoopKind.SERIAL) for each in (adds(X), stores(X)))),
        rows(loop(J, COLUMNS - 1, Accumulate(TOTAL, (I,), "add", Load(X, (I, J)))), stores(R)),
        rows(loop(Var("k"), COLUMNS, adds(X), kind=LoopKind.SERIAL), stores(R)),
        replace(rows(adds(SMALL), stores(SMALL), arguments=(SMALL,)), name="small"),
        rows(adds(Y), stores(R)),
    ],
    ids=[
        "one loop",
        "a few turns",
        "one row for all",
        "every other column",
        "no vectors",
        "a shorter row",
        "no row of this loop",
        "a cache holds it",
        "a result",
    ],
)
def test_others_ask_for_nothing(nest: Nest) -> None:
    assert prefetch_later_rows(nest) == nest
