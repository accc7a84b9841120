"""Arguments and results in containers: tuples (named ones too), lists and mappings of leaves, nested as you like.

A leaf has a name of its own: ``x``, or ``x_0`` and ``x_key`` inside of a container that is called ``x``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast


def named_map(function: Callable[[str, Any], Any], tree: Any, name: str) -> Any:  # any containers
    """The containers of ``tree`` with ``function(name, leaf)`` in place of each leaf; names are paths that begin with
    ``name``.
    """
    if isinstance(tree, Mapping):
        entries = cast("Mapping[Any, Any]", tree)
        return {key: named_map(function, item, _inside(name, key)) for key, item in entries.items()}
    if isinstance(tree, tuple | list):
        items = cast("Sequence[Any]", tree)
        made = [named_map(function, item, _inside(name, i)) for i, item in enumerate(items)]
        kind = cast("Any", type(items))
        return kind(*made) if hasattr(kind, "_fields") else kind(made)
    return function(name, tree)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:  # any containers
    """The same containers with ``function(leaf)`` in place of each leaf."""
    return named_map(lambda _, leaf: function(leaf), tree, "")


def leaves(tree: Any) -> list[Any]:  # any containers
    """All leaves in order."""
    found: list[Any] = []
    mapped(found.append, tree)
    return found


def _inside(name: str, key: object) -> str:
    return f"{name}_{key}" if name else str(key)
