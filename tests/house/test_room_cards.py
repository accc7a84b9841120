"""Every room has a card, its ``__init__`` docstring, that names each of its files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.sources import ROOT, rooms


def unlisted(room: Path) -> set[str]:
    """The modules and inner rooms that a room's card does not name."""
    card = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    names = {path.stem for path in room.glob("*.py")} | {path.parent.name for path in room.glob("*/__init__.py")}
    return {name for name in names - {"__init__", "__main__"} if not re.search(rf"\b{name}\b", card)}


@pytest.mark.parametrize("room", rooms(), ids=lambda room: str(room.relative_to(ROOT)))
def test_card_names_every_file(room: Path) -> None:
    assert (room / "__init__.py").exists(), "a room needs a card"
    assert unlisted(room) == set()


def test_a_missing_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""Reading order: ``first``."""')
    (tmp_path / "first.py").touch()
    (tmp_path / "second.py").touch()
    assert unlisted(tmp_path) == {"second"}
