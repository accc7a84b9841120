"""The site of the documentation: ``make site`` builds it; what breaks it most easily is seen without its packages."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

import graphkernel

ROOT = Path(__file__).parents[2]
CONFIGURATION = (ROOT / "mkdocs.yml").read_text()


def test_packages_that_names_of_the_reference_come_from_are_read() -> None:
    """The reference is read as text: a name of another package is found only where that is read too."""
    (listed,) = re.findall(r"preload_modules: \[(.*?)\]", CONFIGURATION)
    names = re.findall(r"^::: graphkernel\.(\S+)", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    found = [attrgetter(name)(graphkernel) for name in names]
    packages = {getattr(each, "__module__", None) or each.__name__ for each in found}
    assert len(names) >= 20
    assert {name.partition(".")[0] for name in packages} == {"graphkernel", *listed.split(", ")}


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"[a-z0-9_]+\.md", CONFIGURATION.partition("\nnav:")[2]))
    assert named == {page.name for page in (ROOT / "docs").glob("*.md")}
