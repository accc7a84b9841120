"""The content of a constant: an array that nobody changes, known by its digest where it is told from others that look alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from mmap import mmap
from typing import Any

import numpy as np

from kernelgen.system.cached_property import cached_property
from kernelgen.system.mapped import let_go

ENDS = 16
"""Elements at either end that are looked at before two arrays are compared by their digests."""


@dataclass(frozen=True, eq=False)
class ConstantData:
    """The content of a constant. ``array`` is None when only the digest is known (text without its weights).

    Equal where data type, shape and content are. The digest of large weights takes long: where it was not ``told`` it is made
    when somebody asks for it.
    """

    told: str | None
    array: np.ndarray | None

    @staticmethod
    def of(array: np.ndarray) -> ConstantData:
        """Freezes an array: a read-only and row-major copy, or the array itself where nobody can write it."""
        return ConstantData(None, array if _is_frozen(array) else _frozen(np.array(array, order="C", copy=True)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over data type, shape and elements, its first 32 digits."""
        if self.told is not None:
            return self.told
        import hashlib  # loads OpenSSL, for whose digest most starts have no need

        assert self.array is not None, "one of both is known"
        content = hashlib.sha256(f"{self.array.dtype.name}{self.array.shape}".encode())
        content.update(self.array.reshape(-1).view(np.uint8).data)
        let_go(self.array)
        return content.hexdigest()[:32]

    @cached_property
    def _looks(self) -> Hashable:
        """The same for equal contents, and hardly ever for others."""
        if self.array is None:
            return self.digest
        flat = self.array.reshape(-1)
        ends = flat[:ENDS].tobytes(), flat[-ENDS:].tobytes()
        let_go(self.array)  # the system may have brought megabytes around them
        return self.array.dtype.str, self.array.shape, *ends

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, ConstantData) and self._looks == other._looks and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self._looks)

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
