"""A directory is a registry: gather the values of one class that the modules of a package declare.

Operators, rules, expanders, fusion patterns and passes are all found this way, in this project and in third-party
packages named by a dotted name. Nothing registers itself; nothing is remembered between calls.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Protocol, TypeVar, cast

from graphkernel.errors import CatalogueError

OPERATOR_ROOMS = ("kernelgen.tensor.operators", "graphkernel.ops")
"""Where operators are declared: those that kernels are made of, and all others."""


class Named(Protocol):
    """What a catalogue entry must have: a name, unique within its catalogue."""

    @property
    def name(self) -> str:
        """The entry's name."""
        ...


Entry = TypeVar("Entry", bound=Named)


def collect(package: str, kind: type[Entry]) -> tuple[Entry, ...]:
    """All module-level values of class ``kind`` in a package with its inner packages (or in a module), in sorted order.

    Within a module the order is that of the text. A value that one module imports from another counts once.
    Raises :class:`CatalogueError` when two different entries share a name or the package cannot be imported.
    """
    found: dict[str, tuple[Entry, str]] = {}
    for module in _modules(package):
        for variable, value in vars(module).items():
            if not isinstance(value, kind):
                continue
            place = f"{module.__name__}.{variable}"
            first, first_place = found.setdefault(value.name, (value, place))
            if first is not value:
                raise CatalogueError(
                    f"two {kind.__name__} entries are named {value.name!r}: {first_place} and {place}; rename one"
                )
    return tuple(entry for entry, _ in found.values())


def _modules(package: str) -> Iterator[ModuleType]:
    root = _import(package)
    yield root
    for name in sorted(found.name for found in pkgutil.iter_modules(cast("list[str]", getattr(root, "__path__", [])))):
        if name != "__main__":
            yield from _modules(f"{package}.{name}")


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise CatalogueError(f"cannot import {name!r} to read its catalogue entries: {error}") from error
