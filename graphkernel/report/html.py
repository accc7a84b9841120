"""Tables as self-contained HTML. Everything that comes from a model is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphkernel.escape import markup


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A titled table; nothing when there are no rows."""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<h4>{markup(title)}</h4><table><tr>{_cells('th', columns)}</tr>{body}</table>" if body else ""


def section(summary: str, parts: Iterable[str]) -> str:
    """A summary line over tables."""
    return f"<div><p>{markup(summary)}</p>{''.join(parts)}</div>"


def _cells(tag: str, values: Iterable[object]) -> str:
    return "".join(f"<{tag}>{markup(str(value))}</{tag}>" for value in values)
