"""The content of a constant: an array that nobody changes, and the digest that it is known by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from mmap import mmap
from typing import Any

import numpy as np

from kernelgen.system.mapped import let_go


@dataclass(frozen=True, eq=False)
class ConstantData:
    """The content of a constant. ``array`` is None when only the digest is known (text without its weights)."""

    digest: str
    array: np.ndarray | None

    @staticmethod
    def of(array: np.ndarray) -> ConstantData:
        """Freezes an array: a read-only and row-major copy, or the array itself where nobody can write it."""
        import hashlib  # loads OpenSSL, for whose digest most starts have no need

        frozen = array if _is_frozen(array) else _frozen(np.array(array, order="C", copy=True))
        content = hashlib.sha256(f"{frozen.dtype.name}{frozen.shape}".encode())
        content.update(frozen.reshape(-1).view(np.uint8).data)
        let_go(frozen)
        return ConstantData(content.hexdigest()[:32], frozen)

    def __reduce__(self) -> tuple[Callable[..., ConstantData], tuple[str, np.ndarray | None]]:
        return _restored, (self.digest, self.array)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _is_frozen(array: np.ndarray) -> bool:
    """Whether it is row-major and read-only, and so is all that it is a view of."""
    plain = type(array) is np.ndarray and array.flags.c_contiguous and array.flags.aligned
    return plain and _is_read_only(array)


def _is_read_only(held: Any) -> bool:  # numpy's base may be of any type
    if isinstance(held, np.ndarray):
        return not held.flags.writeable and _is_read_only(held.base)
    if isinstance(held, memoryview):
        return _is_read_only(held.obj)
    return held is None or (isinstance(held, bytes | mmap) and memoryview(held).readonly)


def _restored(digest: str, array: np.ndarray | None) -> ConstantData:
    """From a pickle, whose arrays can be written."""
    return ConstantData(digest, None if array is None else _frozen(array))
