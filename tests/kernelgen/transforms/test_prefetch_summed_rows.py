"""Rows that are added up several at once: the next ones are asked for, of arrays that no cache holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernel_examples import Writer, tensor
from nests import I, J, block, buffer, local, loop, output

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Buffer,
    For,
    Let,
    Load,
    LoopKind,
    Nest,
    Num,
    Prefetch,
    Ref,
    Statement,
    Store,
)
from kernelgen.nest.walk import statements
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.cpu.prefetching.hints import LARGE_BYTES
from kernelgen.transforms.cpu.prefetching.summed_rows import AHEAD_BYTES, LEAST_ROWS, LEVEL, prefetch_summed_rows

COLUMNS = 512
LARGE = LARGE_BYTES // (COLUMNS * 4)
X, SMALL = buffer("x", LARGE, COLUMNS), buffer("x", LARGE // 2, COLUMNS)
SUMS = output("sums", COLUMNS)


def terms(x: Buffer, rows: int) -> list[Statement]:
    return [Accumulate(SUMS, (J,), "add", Load(x, (ix.add(I, Num(row)), J))) for row in range(rows)]


def summed(*body: Statement, x: Buffer | tuple[Buffer, ...] = X, kind: LoopKind = LoopKind.SERIAL) -> Nest:
    over = replace(loop(I, 64, loop(J, COLUMNS, *body), kind=kind), step=8)
    return Nest("summed", (), (*((x,) if isinstance(x, Buffer) else x), SUMS), block(over))


def hints(nest: Nest) -> list[Prefetch]:
    return [part for part in statements(nest.body) if isinstance(part, Prefetch)]


def test_each_row_has_a_hint_in_the_next_turn_and_a_little_further_on() -> None:
    found = hints(prefetch_summed_rows(summed(*terms(X, 8))))
    places = [ix.substitute(hint.place, {"i": Num(16), "j": Num(32)}) for hint in found]
    assert places == [Num((16 + row + 8) * COLUMNS + 32 + AHEAD_BYTES // 4) for row in range(8)]
    assert {hint.level for hint in found} == {LEVEL} == {2}


def test_so_many_rows_as_no_processor_follows_are_enough() -> None:
    assert len(hints(prefetch_summed_rows(summed(*terms(X, LEAST_ROWS))))) == LEAST_ROWS


def test_hints_come_first_and_what_is_before_the_loop_stays() -> None:
    first = Let("first", Load(X, (I, Num(0))))
    times = [Accumulate(SUMS, (J,), "add", Ref("first", FLOAT32))]
    nest = summed(*terms(X, 8), *times)
    (over,) = nest.body.statements
    assert isinstance(over, For)
    made = prefetch_summed_rows(replace(nest, body=block(replace(over, body=block(first, *over.body.statements)))))
    *_, vector = (part for part in statements(made.body) if isinstance(part, For))
    assert [isinstance(part, Prefetch) for part in vector.body.statements] == [True] * 8 + [False] * 9
    assert first in tuple(statements(made.body))


OTHER = buffer("other", LARGE, COLUMNS)


@pytest.mark.parametrize(
    "nest",
    [
        summed(*terms(X, LEAST_ROWS - 1), *terms(OTHER, LEAST_ROWS - 1), x=(X, OTHER)),
        summed(*(part for _ in range(LEAST_ROWS) for part in terms(X, 1))),
        summed(*terms(X, 8), kind=LoopKind.PARALLEL),
        summed(*terms(X, LEAST_ROWS - 1)),
        summed(*terms(SMALL, 8), x=SMALL),
        summed(*terms(X, 8), Store(local("t", COLUMNS), (J,), Load(X, (I, J)))),
        summed(*(Accumulate(SUMS, (J,), "add", Load(X, (Num(row), J))) for row in range(8))),
        summed(*(Accumulate(SUMS, (J,), "add", Load(X, (J, ix.add(I, Num(k))))) for k in range(8))),
        summed(*terms(X, 8), kind=LoopKind.INTERLEAVE),
    ],
    ids=[
        "few rows of each",
        "one row",
        "rows at once",
        "few rows",
        "a cache holds it",
        "a store too",
        "the same rows in each turn",
        "across",
        "another loop",
    ],
)
def test_others_ask_for_nothing(nest: Nest) -> None:
    assert prefetch_summed_rows(nest) == nest


@pytest.mark.parametrize("columns", [256, 4096])
def test_sums_over_columns_have_these_hints_alone(columns: int) -> None:
    """Short rows are one tile, beside a loop of zeros: no reason to ask a page ahead."""
    writer, x = Writer(), tensor("x", 1 << 14, columns)
    total = writer.op("ReduceSum", x, shape=(1, columns), axis=(0,), keep_dims=True)
    nest = lower(writer.desc("total", (x,), total), Plan()).nest
    assert {hint.level for hint in hints(nest)} == {LEVEL}
