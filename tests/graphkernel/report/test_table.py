from __future__ import annotations

import json

import pytest

from graphkernel.report.table import Amount, drawn, rows_as_json

COLUMNS = ("kernel", "ms", "share", "moves", "what it holds")
ROWS = [
    ("Fused_Add_Mul", Amount(0.25, "0.250"), Amount(0.755, "75.5%"), "1.5 MiB", "Add, Mul, and a long tail of others"),
    ("other", 12, "4.5%", "12 B", "-"),
]


def test_in_a_file_columns_are_aligned_and_nothing_is_folded() -> None:
    assert drawn(COLUMNS, ROWS, title="times") == (
        "times\n"
        "kernel            ms  share    moves  what it holds\n"
        "Fused_Add_Mul  0.250  75.5%  1.5 MiB  Add, Mul, and a long tail of others\n"
        "other             12   4.5%     12 B  -"
    )


@pytest.mark.parametrize("width", [80, 60, 50, 40])
def test_on_a_terminal_texts_fold_and_numbers_are_whole(width: int) -> None:
    text = drawn(COLUMNS, ROWS, width=width)
    assert max(map(len, text.splitlines())) <= width
    for number in ("0.250", "12", "75.5%", "4.5%", "1.5 MiB", "12 B"):
        assert number in text
    assert "…" not in text


def test_what_a_name_holds_is_no_markup() -> None:
    assert "[bold]x[/bold] \\n" in drawn(("a",), [("[bold]x[/bold] \n",)])


def test_programs_get_numbers_as_numbers() -> None:
    first, second = json.loads(rows_as_json(COLUMNS, ROWS))
    assert (first["ms"], first["share"], second["ms"]) == (0.25, 0.755, 12)


def test_no_rows_leave_the_heading() -> None:
    assert drawn(("a", "b"), []) == "a  b"
