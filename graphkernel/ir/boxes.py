"""Values that are no arrays, such as lists of tensors, as arrays: each is the only element of one without axes.

So whatever hands on arrays hands them on as well. What a user gives and gets is the value itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkernel.ir.types import DType, TensorType, is_object, is_whole

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


def as_values(arrays: Sequence[Array], types: Sequence[TensorType]) -> tuple[Any, ...]:
    """What a user gets."""
    return tuple(unboxed(array, of.dtype) for array, of in zip(arrays, types, strict=True))
