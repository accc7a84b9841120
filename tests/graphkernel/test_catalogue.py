"""A directory is a registry."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphkernel.catalogue import collect
from graphkernel.errors import CatalogueError


@dataclass(frozen=True)
class Entry:
    name: str


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes a package of the given modules and returns its dotted name."""
    made: list[str] = []

    def write(name: str, **modules: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(f"from {__name__} import Entry\n{text}\n")
        made.append(name)
        return name

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Entry.__module__])
    yield write
    for module in [m for m in sys.modules if m.split(".")[0] in made]:
        del sys.modules[module]


def test_entries_come_in_sorted_module_order(package):
    name = package("cat_order", b="TWO = Entry('two')", a="ONE = Entry('one')\nZERO = Entry('zero')")
    assert [entry.name for entry in collect(name, Entry)] == ["one", "zero", "two"]


def test_an_imported_entry_counts_once(package):
    name = package("cat_import", a="ONE = Entry('one')", b="from cat_import.a import ONE")
    assert [entry.name for entry in collect(name, Entry)] == ["one"]


def test_two_entries_of_one_name_are_refused_with_both_places(package):
    name = package("cat_twice", a="ONE = Entry('same')", b="OTHER = Entry('same')")
    with pytest.raises(CatalogueError, match=r"'same'.*cat_twice\.a\.ONE and cat_twice\.b\.OTHER"):
        collect(name, Entry)


def test_a_single_module_is_a_catalogue_too(package):
    package("cat_single", a="ONE = Entry('one')", b="TWO = Entry('two')")
    assert [entry.name for entry in collect("cat_single.b", Entry)] == ["two"]


def test_a_package_that_cannot_be_imported_is_named():
    with pytest.raises(CatalogueError, match="no_such_package"):
        collect("no_such_package", Entry)
