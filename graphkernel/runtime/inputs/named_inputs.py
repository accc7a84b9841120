"""Inputs by name: what a call or a file names, in the order of the graph. See :func:`kernelgen.tensor.names.meant`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphkernel.errors import InputError, nearest
from kernelgen.tensor.names import meant


def are_named(positional: Sequence[object], keywords: Mapping[str, object]) -> bool:
    """Whether a call says which input is which."""
    return bool(keywords) or (len(positional) > 0 and isinstance(positional[0], Mapping))


def inputs_of_call(
    names: Sequence[str], positional: Sequence[object], keywords: Mapping[str, object]
) -> tuple[object, ...]:
    """The arrays of ``exe({"x": x})``, or of ``exe(x, mask=m)``, where the first ones may stand without their names.

    Raises ``InputError`` for names that no input has, for inputs given twice and for those that are missing.
    """
    if positional and isinstance(positional[0], Mapping):
        if len(positional) > 1 or keywords:
            raise InputError("a call takes one mapping of all inputs, or arrays and keywords, not both")
        return inputs_by_name(names, {str(name): array for name, array in positional[0].items()})
    if len(positional) > len(names):
        raise InputError(
            f"the graph takes {len(names)} inputs ({', '.join(names)}), got {len(positional)} and keywords"
        )
    first = dict(zip(names, positional, strict=False))
    given = resolved(names, keywords)
    if twice := [name for name in given if name in first]:
        raise InputError(f"input {twice[0]} is given twice, in its place and by its name")
    return complete(names, {**first, **given})


def inputs_by_name(names: Sequence[str], given: Mapping[str, object]) -> tuple[object, ...]:
    """The arrays of a mapping, one for each input and no others."""
    return complete(names, resolved(names, given))


def resolved(names: Sequence[str], given: Mapping[str, object]) -> dict[str, object]:
    """The same arrays by the inputs' own names. Raises InputError for a name that is none, or is given twice."""
    found: dict[str, object] = {}
    for typed, array in given.items():
        name = meant(typed, names)
        if name is None:
            raise InputError(f"no input is called {typed}{nearest(typed, names)}; inputs: {', '.join(names)}")
        if name in found:
            raise InputError(f"input {name} is given twice")
        found[name] = array
    return found


def complete(names: Iterable[str], found: Mapping[str, object]) -> tuple[object, ...]:
    """All of them in order. Raises ``InputError``, which names those that are missing."""
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"input {', '.join(missing)} is missing")
    return tuple(found[name] for name in names)
