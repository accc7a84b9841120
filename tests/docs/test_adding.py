"""docs/adding.md does what it says: its files make a package, and its lines run."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.sources import ROOT

PAGE = (ROOT / "docs" / "adding.md").read_text()
SECTIONS = {
    "A scalar function",
    "A structural operator",
    "An expander",
    "A gradient",
    "A rule",
    "A fusion pattern",
    "A pass",
    "A target",
    "A dialect of C for devices",
    "A device of a known language",
    "A data type",
}


@dataclass(frozen=True)
class Section:
    """One way to add something: the files it shows, and the lines that use them."""

    title: str
    files: dict[str, str]
    program: str


def sections() -> list[Section]:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return [section(title, text) for title, text in zip(parts[::2], parts[1::2], strict=True)]


def section(title: str, text: str) -> Section:
    blocks = re.findall(r"^```python(?: file=(\S+))?\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    files = {name: code for name, code in blocks if name}
    return Section(title, files, "\n".join(code for name, code in blocks if not name))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder that holds the package with the files of every section."""
    for one in sections():
        for name, code in one.files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(code)
    (tmp_path / "acme" / "__init__.py").touch()
    return tmp_path


def test_page_has_a_section_for_each() -> None:
    assert {one.title for one in sections()} == SECTIONS


@pytest.mark.parametrize("one", sections(), ids=lambda one: one.title)
def test_section(one: Section, package: Path) -> None:
    path = f"import sys\nsys.path[:0] = [{str(package)!r}, {str(ROOT)!r}]\n"
    done = subprocess.run(
        [sys.executable, "-c", path + one.program], capture_output=True, text=True, timeout=120, cwd=package
    )
    assert done.returncode == 0, done.stderr
    assert "assert" in one.program
