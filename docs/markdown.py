"""What generated pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTE = "*Written by `make docs` from the code; a test keeps it current.*"
RUNS = "*Written by `make docs` from the runs in benchmarks/results; a test keeps it current.*"


def page(title: str, *parts: str, note: str = NOTE) -> str:
    """A page with its title and the note where it comes from."""
    return "\n\n".join([f"# {title}", note, *parts]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in lines)


def _escaped(cell: str) -> str:
    """Without what ends a cell, or makes a link of two brackets."""
    return cell.replace("|", "\\|").replace("][", "]\\[")
