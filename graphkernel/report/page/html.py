"""Parts of pages as HTML. Everything that comes from a model is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelgen.system.escape import markup


@dataclass(frozen=True)
class Figure:
    """A number in a table: what is shown, and what it is sorted by. ``share`` is drawn as a bar."""

    text: str
    value: float
    share: float | None = None


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of ``rows`` (texts, each a cell) under ``columns``, with a ``title``; nothing when there are no rows."""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<h4>{markup(title)}</h4><table><tr>{_cells('th', columns)}</tr>{body}</table>" if body else ""


def sortable(columns: Sequence[str], rows: Sequence[Sequence[object]], marks: Sequence[str] = ()) -> str:
    """A table that a page's script sorts by the column that is pressed; nothing when there are no rows.

    Columns of figures stand to the right. ``marks`` are attributes of the rows.
    """
    if not rows:
        return ""
    numeric = [isinstance(cell, Figure) for cell in rows[0]]
    heads = "".join(
        f'<th scope="col"{_number(is_number)}><button type="button">{markup(name)}</button></th>'
        for name, is_number in zip(columns, numeric, strict=True)
    )
    lines = (
        f"<tr{mark}>{''.join(map(_cell, row))}</tr>" for row, mark in zip(rows, marks or [""] * len(rows), strict=True)
    )
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="scroll"><table class="sortable">{body}</table></div>'


def section(summary: str, parts: Iterable[str]) -> str:
    """A summary line over tables."""
    return f"<div><p>{markup(summary)}</p>{''.join(parts)}</div>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Numbers with what they count, large."""
    items = "".join(f"<li><b>{markup(value)}</b><span>{markup(name)}</span></li>" for name, value in pairs)
    return f'<ul class="facts">{items}</ul>'


def _cell(value: object) -> str:
    if not isinstance(value, Figure):
        return f"<td>{markup(str(value))}</td>"
    bar = "" if value.share is None else f'<span class="share" style="width:{60 * value.share:.1f}px"></span>'
    return f'<td class="number" data-value="{value.value!r}">{bar}{markup(value.text)}</td>'


def _number(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cells(tag: str, values: Iterable[object]) -> str:
    return "".join(f"<{tag}>{markup(str(value))}</{tag}>" for value in values)
