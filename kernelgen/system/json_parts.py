"""Parts of a JSON document as what they must be: each function gives back what it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

Items = Sequence[Any]  # what JSON holds


def whole(given: object) -> int:
    """A number of something, 0 or more. Raises ValueError for anything else."""
    if type(given) is not int or given < 0:
        raise ValueError(f"{given!r} is no number of anything")
    return given


def flag(given: object) -> bool:
    """True or false. Raises ValueError for anything else."""
    if type(given) is not bool:
        raise ValueError(f"{given!r} is neither true nor false")
    return given


def text(given: object) -> str:
    """A text. Raises ValueError for anything else."""
    if type(given) is not str:
        raise ValueError(f"{given!r} is no text")
    return given


def items(given: object) -> Items:
    """A list of anything. Raises ValueError for anything else."""
    if type(given) is not list:
        raise ValueError(f"expected a list, found {given!r}")
    return cast("Items", given)


def table(given: object) -> Mapping[str, Any]:
    """An object of JSON: values by name. Raises ValueError for anything else."""
    if type(given) is not dict:
        raise ValueError(f"expected an object, found {given!r}")
    return cast("Mapping[str, Any]", given)


def texts(given: object) -> tuple[str, ...]:
    """Texts, of a list."""
    return tuple(map(text, items(given)))


def wholes(given: object) -> tuple[int, ...]:
    """Numbers of something, of a list."""
    return tuple(map(whole, items(given)))
