"""Tables: drawn for people on a terminal, tab-separated lines for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from graphkernel.escape import cell, line


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Prints to stdout. What stands in a cell is text: for the terminal, for rich, and for a spreadsheet."""
    terminal = sys.stdout.isatty()
    texts = [[line(str(each)) if terminal else cell(str(each)) for each in row] for row in rows]
    if not terminal:
        print("\n".join([title] * bool(title) + ["\t".join(row) for row in [list(columns), *texts]]))
        return
    from rich.console import Console  # only terminals need it
    from rich.markup import escape
    from rich.table import Table

    table = Table(*columns, title=title or None)
    for row in texts:
        table.add_row(*map(escape, row))
    Console().print(table)
