"""The generated pages are what the code declares."""

from __future__ import annotations

import pytest

from docs.generate import ROOT, pages


@pytest.mark.parametrize("name", sorted(pages()))
def test_page_is_current(name: str) -> None:
    assert (ROOT / name).read_text() == pages()[name], "run `make docs`"
