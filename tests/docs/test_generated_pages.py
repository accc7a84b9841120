"""The generated pages are what the code declares."""

from __future__ import annotations

from docs.generate import ROOT, pages


def test_pages_are_current() -> None:
    """All in one test: they are made together, when it runs, from what the code declares of all operators."""
    stale = [name for name, text in pages().items() if (ROOT / name).read_text() != text]
    assert stale == [], "run `make docs`"
