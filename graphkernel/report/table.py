"""Tables for people, on a terminal and in a file: columns aligned, numbers whole; on a terminal long texts are folded.

Programs read the JSON that commands print with ``--json``: see :func:`rows_as_json`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO

from kernelgen.system.escape import line

WIDEST = 10_000  # characters of a line in a file: nothing is folded there
AMOUNT = re.compile(r"([-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?|inf|nan)( ?([KMGT]?i?B|[mu]?s|%|x))?")


@dataclass(frozen=True)
class Amount:
    """A number, and how people read it."""

    value: float
    text: str

    def __str__(self) -> str:
        return self.text


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Prints ``rows`` under their ``columns`` and a ``title`` to stdout: as wide as the terminal, or as the content
    where stdout is none.
    """
    width = None
    if sys.stdout.isatty():
        from rich.console import Console  # which knows how wide the terminal is

        width = Console().width
    print(drawn(columns, rows, title, width))


def drawn(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", width: int | None = None) -> str:
    """The table as text. ``width``: the characters of a line, into which texts are folded; None folds nothing.

    What stands in a cell is text, also for rich. A column of nothing but numbers is right-aligned and is never cut.
    """
    from rich.console import Console  # slow to import; commands without a table need none of it
    from rich.table import Table
    from rich.text import Text

    texts = [[line(str(each)) for each in row] for row in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for position, name in enumerate(columns):
        cells = [row[position] for row in texts]
        if any(cells) and all(AMOUNT.fullmatch(each) for each in cells if each):
            table.add_column(name, justify="right", no_wrap=True, min_width=max(map(len, cells)))
        else:
            table.add_column(name, overflow="fold")
    for row in texts:
        table.add_row(*map(Text, row))
    page = StringIO()
    Console(file=page, width=width or WIDEST, color_system=None).print(table)
    drawn_lines = [each.rstrip() for each in page.getvalue().rstrip("\n").split("\n")]
    return "\n".join([title] * bool(title) + drawn_lines)


def rows_as_json(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same table for programs: a list of objects, with the columns as keys."""
    found = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
    return json.dumps(found, indent=2, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, Amount):
        return value.value
    return value if isinstance(value, str | int | float | bool | None) else str(value)
