"""The contract of docstrings: who has many arguments names them, who raises says so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.sources import Function, Source, sources

MANY = 3
# Declarations, whose arguments are those that the decorator asks for and documents; those of commands have a help text.
DECLARING = {"command", "callback", "rule", "expander", "fusion", "gradient", "graph_pass", "overload", "override"}

# Public functions that break the contract, at most. The numbers go down with the functions; they may not go up.
ARGUMENTS_WITHOUT_NAMES = 314
RAISES_WITHOUT_WORDS = 4


def public_functions(source: Source) -> Iterator[Function]:
    """Functions of a module and methods of its public classes that have no underscore and declare nothing."""
    classes = (node for node in source.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    for node in (*source.tree.body, *(inner for each in classes for inner in each.body)):
        if isinstance(node, Function) and not node.name.startswith("_") and not _declares(node):
            yield node


def unnamed(function: Function) -> list[str]:
    """The arguments of a function with many that its docstring does not name."""
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    names = [each.arg for each in every if each.arg not in ("self", "cls") and not each.arg.startswith("_")]
    text = ast.get_docstring(function) or ""
    return [name for name in names if len(names) >= MANY and not re.search(rf"\b{name}\b", text)]


def raises_silently(function: Function) -> bool:
    """True of a function that raises, itself and not only again, where its docstring does not say it."""
    raising = any(isinstance(node, ast.Raise) and node.exc is not None for node in _own_nodes(function))
    return raising and not re.search(r"\b[Rr]aise[sd]?\b", ast.get_docstring(function) or "")


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own_nodes(child)


def _declares(function: Function) -> bool:
    called = (each.func if isinstance(each, ast.Call) else each for each in function.decorator_list)
    names = (each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in called)
    return not DECLARING.isdisjoint(names)


def test_arguments_are_named() -> None:
    found = [f"{s.path}:{f.lineno} {f.name}" for s in sources() for f in public_functions(s) if unnamed(f)]
    assert len(found) <= ARGUMENTS_WITHOUT_NAMES, found


def test_who_raises_says_so() -> None:
    found = [f"{s.path}:{f.lineno} {f.name}" for s in sources() for f in public_functions(s) if raises_silently(f)]
    assert len(found) <= RAISES_WITHOUT_WORDS, found


def test_breaches_are_found() -> None:
    planted = ast.parse(
        "def f(a, b, c):\n    '''Of a and b.'''\n    raise ValueError\n"
        "def g(a, b, c):\n    '''Of a, b and c.\n\n    Raises:\n        ValueError: always.\n    '''\n    raise ValueError\n"
        "def _h(a, b, c):\n    raise ValueError\n"
        "@rule(safety=1)\ndef r(x, y, z):\n    '''Sum.'''\n"
        "def k(a):\n    def inner():\n        raise ValueError\n    return inner\n"
    )
    functions = {f.name: f for f in public_functions(Source("planted.py", (), planted))}
    assert set(functions) == {"f", "g", "k"}
    assert {name: unnamed(f) for name, f in functions.items()} == {"f": ["c"], "g": [], "k": []}
    assert {name: raises_silently(f) for name, f in functions.items()} == {"f": True, "g": False, "k": False}
