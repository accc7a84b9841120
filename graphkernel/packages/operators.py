"""Operators by their names and files: what a package says of those that neither a kernel nor a region computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from graphkernel.errors import PackageError
from graphkernel.packages.nodes import operator_file
from kernelgen.tensor.operator import Operator


def operators_called(named: Iterable[tuple[str, str]]) -> Mapping[str, Operator]:
    """Operators by name, each with the file that declares it, without loading all others."""
    return {name: operator for name, file in named if (operator := operator_called(name, file)) is not None}


def operator_called(name: str, file: str) -> Operator | None:
    """The one of that name in the file; None where it has none. Raises PackageError for a file that declares no operators."""
    try:
        declared = vars(import_module(operator_file(file))).values()
    except ModuleNotFoundError as error:
        raise PackageError(f"there is no file of operators called {file!r}") from error
    return next((op for op in declared if isinstance(op, Operator) and op.name == name), None)
