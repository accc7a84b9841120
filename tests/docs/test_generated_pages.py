"""The generated pages are what the code declares."""

from __future__ import annotations

import pytest

from docs.generate import ROOT, pages

PAGES = pages()
"""Made once: each needs what the code declares of all operators."""


@pytest.mark.parametrize("name", sorted(PAGES))
def test_page_is_current(name: str) -> None:
    assert (ROOT / name).read_text() == PAGES[name], "run `make docs`"
