"""Arrays of any library in, the same kind out: numpy inside, DLPack and the array protocols at the border."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from graphkernel.errors import InputError
from graphkernel.runtime.inputs.torch_tensors import check_tensor, from_tensor, is_torch, to_tensor

Array = np.ndarray[Any, np.dtype[Any]]
CPU_DEVICE = 1  # DLPack's kDLCPU
PROTOCOLS = ("__array_interface__", "__array__")
PLAIN = (bool, int, float, list, tuple, memoryview, np.generic)


def to_numpy(given: object, name: str) -> Array:
    """The array as numpy, without a copy where the other library allows it. ``name`` is said in errors.

    Raises ``InputError`` for objects that are no arrays and for arrays on another device.
    """
    if isinstance(given, np.ndarray):
        return given
    if is_torch(given):
        check_tensor(given, name)
    if hasattr(given, "__dlpack_device__"):
        return _from_dlpack(given, name)
    if isinstance(given, PLAIN) or any(hasattr(given, p) for p in PROTOCOLS):
        return np.asarray(given)
    raise InputError(f"input {name}: {type(given).__name__} is no array; give numpy, DLPack or __array_interface__")


def apart(arrays: Sequence[Array], written: Collection[int]) -> Sequence[Array]:
    """The arrays, of which those that share a byte with one of the ``written`` positions are copies.

    Raises ``InputError`` where two that are written do.
    """
    found = list(arrays)
    ends = sorted(
        (*np.lib.array_utils.byte_bounds(array), position) for position, array in enumerate(arrays) if array.size
    )
    for number, (_, stop, position) in enumerate(ends):
        for start, _, other in ends[number + 1 :]:
            if start >= stop:
                break
            if position in written and other in written:
                raise InputError(f"inputs {position} and {other} are both assigned to and share memory; give copies")
            if position in written or other in written:
                copied = other if position in written else position
                found[copied] = arrays[copied].copy()
    return found


def layout_of(given: Any, name: str) -> tuple[tuple[int, ...], str]:
    """Shape and the name of the data type, of arrays on any device. ``name`` is said in errors."""
    if is_torch(given):
        check_tensor(given, name)
        return tuple(given.shape), str(given.dtype).rpartition(".")[2]  # torch writes torch.float32
    elsewhere = hasattr(given, "__dlpack_device__") and given.__dlpack_device__()[0] != CPU_DEVICE
    if elsewhere or hasattr(given, "__cuda_array_interface__"):
        return tuple(given.shape), str(given.dtype)
    array = to_numpy(given, name)
    return array.shape, array.dtype.name


def wrapper_for(given: Sequence[object]) -> Callable[[Array], Any] | None:
    """The function that turns a numpy result into the kind of array that came in; None when that is numpy.

    The first argument that is not numpy decides. Nothing is imported: whoever made the argument is imported already.
    """
    for array in given:
        if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
            return _dlpack_reader(array)
    return None


def _from_dlpack(given: Any, name: str) -> Array:  # any library's array
    kind, _ = given.__dlpack_device__()
    if kind != CPU_DEVICE:
        raise InputError(f"input {name} is on another device (DLPack device type {kind}); move it to the CPU")
    try:
        return from_tensor(given) if is_torch(given) else np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError) as error:
        raise InputError(
            f"input {name}: {type(given).__name__} gives no DLPack array numpy can read: {error}"
        ) from error


def _dlpack_reader(array: Any) -> Callable[[Array], Any] | None:  # any library's array
    if is_torch(array):
        return to_tensor
    if hasattr(array, "__array_namespace__"):
        return getattr(array.__array_namespace__(), "from_dlpack", None)
    return getattr(sys.modules.get(type(array).__module__.partition(".")[0]), "from_dlpack", None)
