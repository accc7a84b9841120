"""Operators by their names and files: what a package says of those that neither a kernel nor a region computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec

from graphkernel.catalogue import OPERATOR_ROOMS
from graphkernel.errors import PackageError
from kernelgen.tensor.operator import Operator


def operators_called(named: Iterable[tuple[str, str]]) -> Mapping[str, Operator]:
    """Operators by name, each with the file that declares it, without loading all others."""
    return {name: operator for name, file in named if (operator := operator_called(name, file)) is not None}


def operator_called(name: str, file: str) -> Operator | None:
    """The one of that name in the file; None where it has none. Raises PackageError for a file that declares no operators."""
    if not _declares_operators(file):
        raise PackageError(f"there is no file of operators called {file!r}")
    declared = vars(import_module(file)).values()
    return next((op for op in declared if isinstance(op, Operator) and op.name == name), None)


def _declares_operators(file: str) -> bool:
    """Whether it is the dotted name of a file in a room of operators: nothing else is imported for a package."""
    parts = file.split(".")
    folder, known = ".".join(parts[:-1]), any(file.startswith(f"{room}.") for room in OPERATOR_ROOMS)
    return known and all(map(str.isidentifier, parts)) and find_spec(folder) is not None and find_spec(file) is not None
