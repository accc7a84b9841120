"""Operators of users' packages, which descriptions may hold beside AKG's."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from kernelgen.errors import ArgumentError
from kernelgen.tensor.operator import Operator


def operators_in(modules: Iterable[str]) -> tuple[Operator, ...]:
    """The operators that modules declare, by their dotted names. Raises ArgumentError for one that cannot be imported."""
    return tuple(operator for module in modules for operator in _declared_in(module))


def _declared_in(module: str) -> Iterable[Operator]:
    try:
        declared = vars(import_module(module)).values()
    except ImportError as error:
        raise ArgumentError(f"operators of {module}: {error}") from error
    return [value for value in declared if isinstance(value, Operator)]
