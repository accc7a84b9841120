"""How many threads share a row, by what the estimate is made of."""

from __future__ import annotations

import pytest

from kernelgen.poly.mapping.threads_per_row import HELD, MOST_EACH, Rows, width_of

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
FLOATS = 4


def chosen(count: int | None, length: int, reductions: int = 2, held: int = 2 * FLOATS) -> int:
    return width_of(Rows(count, length, reductions, held), WIDTHS)[0]


@pytest.mark.parametrize("length", [256, 1024, 4096, 16384])
def test_elements_of_many_rows_fit_the_registers_of_few_threads(length: int) -> None:
    width = chosen(100_000, length)
    assert length // width * 2 * FLOATS <= HELD
    assert width == 512 or length // width >= 16


def test_few_rows_get_more_threads_than_many() -> None:
    assert chosen(4, 4096) > chosen(100_000, 4096)


def test_an_unknown_number_of_rows_is_many() -> None:
    assert chosen(None, 1024) == chosen(100_000, 1024)


def test_what_stays_with_the_threads_asks_for_more_of_them() -> None:
    assert chosen(100_000, 4096, held=8 * FLOATS) > chosen(100_000, 4096, held=FLOATS)


def test_rows_that_nobody_holds_may_be_longer_than_the_registers() -> None:
    rows = Rows(512, 262_144, 1, 0)
    assert rows.is_held(512)
    assert not Rows(512, 262_144, 1, FLOATS).is_held(512)
    assert width_of(rows, WIDTHS)[0] == 512


def test_a_row_too_long_for_all_registers_gets_all_threads() -> None:
    assert chosen(1000, 512 * MOST_EACH * 2) == 512


def test_a_barrier_costs_more_than_a_warp_alone() -> None:
    rows = Rows(100_000, 1024, 2, FLOATS)
    assert rows.cycles(32) < rows.cycles(64)


def test_the_reason_says_what_was_estimated() -> None:
    _, why = width_of(Rows(16384, 4096, 2, 2 * FLOATS), WIDTHS)
    assert "128 threads share 4096 iterations" in why
    assert "estimated" in why
