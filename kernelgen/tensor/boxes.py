"""Values that are no arrays, such as lists of tensors, as arrays: each is the only element of one without axes.

So whatever hands on arrays hands them on as well. What a user gives and gets is the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, cast

import numpy as np

from kernelgen.tensor.types import DType, TensorType, is_object, is_whole

Array = np.ndarray[Any, np.dtype[Any]]


def boxed(value: object) -> Array:
    """An array without axes whose element is the value."""
    box = np.empty(1, object)
    box[0] = value
    return box.reshape(()).copy()


def unboxed(array: Array, of: DType) -> Any:  # whatever the value is
    """The value in an array of a data type: the array itself, unless it is a box."""
    return array[()] if is_whole(of) else array


def as_array(given: object, of: TensorType) -> Array:
    """What a user gives for a value of a type, as an array."""
    if is_whole(of.dtype):
        return boxed(given)
    return np.asarray(given, object if is_object(of.dtype) else None)


def copied(values: Sequence[Any]) -> list[Any]:
    """The values, of which none is shared."""
    return [value.copy() if isinstance(value, np.ndarray) else deepcopy(value) for value in values]


def pairs(one: Any, other: Any) -> list[tuple[Array, Array]] | None:
    """The arrays that stand at the same places in two values; None where these are built otherwise.

    A value is an array, a list of values, a mapping to values, or None.
    """
    if one is None or other is None:
        return [] if one is other else None
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        ours, theirs = cast("Mapping[Any, Any]", one), cast("Mapping[Any, Any]", other)
        return (
            pairs([ours[key] for key in ours], [theirs[key] for key in ours]) if ours.keys() == theirs.keys() else None
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        items = cast("tuple[Sequence[Any], Sequence[Any]]", (one, other))
        if len(items[0]) != len(items[1]):
            return None
        inner = [pairs(*pair) for pair in zip(*items, strict=True)]
        found = [each for each in inner if each is not None]
        return list(chain.from_iterable(found)) if len(found) == len(inner) else None
    if any(isinstance(value, Mapping | list | tuple) for value in (one, other)):
        return None
    return [(np.asarray(one), np.asarray(other))]


def is_text(array: Array) -> bool:
    """Whether it holds texts, which nobody measures: they are equal or not."""
    return array.dtype.kind in "OSU"


def as_values(arrays: Sequence[Array], types: Sequence[TensorType]) -> tuple[Any, ...]:
    """What a user gets."""
    return tuple(unboxed(array, of.dtype) for array, of in zip(arrays, types, strict=True))
