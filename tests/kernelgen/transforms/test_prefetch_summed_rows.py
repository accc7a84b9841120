"""Rows that are added up several at once: the next ones are asked for, of arrays that no cache holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernel_examples import Writer, tensor
from nests import I, J, block, buffer, local, loop, output

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Accumulate, Buffer, Load, LoopKind, Nest, Num, Prefetch, Statement, Store
from kernelgen.nest.walk import statements
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.transforms.cpu.prefetch_rows import LARGE_BYTES
from kernelgen.transforms.cpu.prefetch_summed_rows import AHEAD_BYTES, LEAST_ROWS, LEVEL, prefetch_summed_rows

COLUMNS = 512
LARGE = LARGE_BYTES // (COLUMNS * 4)
X, SMALL = buffer("x", LARGE, COLUMNS), buffer("x", LARGE // 2, COLUMNS)
SUMS = output("sums", COLUMNS)


def terms(x: Buffer, rows: int) -> list[Statement]:
    return [Accumulate(SUMS, (J,), "add", Load(x, (ix.add(I, Num(row)), J))) for row in range(rows)]


def summed(*body: Statement, x: Buffer = X, kind: LoopKind = LoopKind.SERIAL) -> Nest:
    over = replace(loop(I, 64, loop(J, COLUMNS, *body), kind=kind), step=8)
    return Nest("summed", (), (x, SUMS), block(over))


def hints(nest: Nest) -> list[Prefetch]:
    return [part for part in statements(nest.body) if isinstance(part, Prefetch)]


def test_each_row_has_a_hint_in_the_next_turn_and_a_little_further_on() -> None:
    found = hints(prefetch_summed_rows(summed(*terms(X, 8))))
    places = [ix.substitute(hint.place, {"i": Num(16), "j": Num(32)}) for hint in found]
    assert places == [Num((16 + row + 8) * COLUMNS + 32 + AHEAD_BYTES // 4) for row in range(8)]
    assert {hint.level for hint in found} == {LEVEL}


@pytest.mark.parametrize(
    "nest",
    [
        summed(*terms(X, LEAST_ROWS - 1)),
        summed(*terms(SMALL, 8), x=SMALL),
        summed(*terms(X, 8), Store(local("t", COLUMNS), (J,), Load(X, (I, J)))),
        summed(*(Accumulate(SUMS, (J,), "add", Load(X, (Num(row), J))) for row in range(8))),
        summed(*(Accumulate(SUMS, (J,), "add", Load(X, (J, ix.add(I, Num(k))))) for k in range(8))),
        summed(*terms(X, 8), kind=LoopKind.INTERLEAVE),
    ],
    ids=["few rows", "a cache holds it", "a store too", "the same rows in each turn", "across", "another loop"],
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
