"""The content of a constant: an array that nobody changes, known by its digest where it is told from others that look alike.

Weights that passes lay out or transform are only said to be so, and are made when somebody first reads them: what is decided
by types alone waits for none of them, and what is thrown away or found in a cache is never made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import prod
from mmap import mmap
from typing import Any, Final

import numpy as np

from kernelgen.errors import VerifyError
from kernelgen.system.cached_property import cached_property
from kernelgen.system.mapped import let_go
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.types import Shape, TensorType

ENDS = 16
"""Elements at either end that are looked at before two arrays are compared."""

SMALL = 1 << 16
"""Bytes of arrays that are compared at once; those of others are read only once, for their digests."""


class Derivation(NamedTuple):
    """``function(*contents of sources)``, an array of this ``type``.

    ``function`` is equal to itself alone, or a frozen value; it gives the same for the same.
    """

    function: Callable[..., np.ndarray]
    sources: tuple[ConstantData, ...]
    type: TensorType

    def made(self) -> np.ndarray:
        """The array, read-only and row-major. Raises VerifyError where it is not of the type that was promised."""
        given = [source.array for source in self.sources]
        found = _owned(self.function(*given))
        for array in given:
            if array is not None:
                let_go(array)
        if (found.shape, found.dtype) != (self.type.shape, self.type.dtype.numpy):
            raise VerifyError(
                "G5", f"content {found.dtype}{list(found.shape)} is derived where {self.type} was promised"
            )
        return found


@dataclass(frozen=True, eq=False)
class ConstantData:
    """The content of a constant: ``held``, or what its ``derivation`` makes. It has neither when only the digest is known
    (text without its weights).

    Equal where data type, shape and content are, and of what is derived where it is derived alike. The digest of large
    weights takes long: where it was not ``told`` it is made when somebody asks for it.
    """

    told: str | None
    held: np.ndarray | None
    derivation: Derivation | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is an array, or one can be made."""
        return self.held is not None or self.derivation is not None

    @property
    def form(self) -> tuple[Shape, np.dtype[Any]] | None:
        """The array's shape and data type, for which it is not made; None when only the digest is known."""
        if self.derivation is not None:
            return self.derivation.type.shape, self.derivation.type.dtype.numpy
        return None if self.held is None else (self.held.shape, self.held.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of the array, for which it is not made; 0 when only the digest is known."""
        form = self.form
        return 0 if form is None else prod(dim for dim in form[0] if isinstance(dim, int)) * form[1].itemsize

    @property
    def array(self) -> np.ndarray | None:
        """The content; None when only the digest is known."""
        return self.held if self.derivation is None else self._made

    @cached_property
    def _made(self) -> np.ndarray:
        assert self.derivation is not None, "as asked before"
        return self.derivation.made()

    @staticmethod
    def of(array: np.ndarray) -> ConstantData:
        """Freezes an array: a read-only and row-major copy, or the array itself where nobody can write it."""
        return ConstantData(None, _owned(array))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over data type, shape and elements, its first 32 digits."""
        if self.told is not None:
            return self.told
        import hashlib  # loads OpenSSL, for whose digest most starts have no need

        array = self.array
        assert array is not None, "one of both is known"
        content = hashlib.sha256(f"{array.dtype.name}{array.shape}".encode())
        content.update(array.reshape(-1).view(np.uint8).data)
        let_go(array)
        return content.hexdigest()[:32]

    @cached_property
    def _looks(self) -> Hashable:
        """The same for equal contents, and hardly ever for others; how it is derived decides for what is."""
        if self.derivation is not None:
            return self.derivation
        if self.held is None:
            return self.digest
        flat = self.held.reshape(-1)
        ends = flat[:ENDS].tobytes(), flat[-ENDS:].tobytes()
        let_go(self.held)  # the system may have brought megabytes around them
        return self.held.dtype.str, self.held.shape, *ends

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ConstantData) or self._looks != other._looks:
            return False
        if self.held is not None and other.held is not None and self.held.nbytes <= SMALL:
            return bool(self.held.tobytes() == other.held.tobytes())  # a digest of both takes ten times as long
        return self.derivation is not None or self.digest == other.digest

    @cached_property
    def _hash(self) -> int:
        return hash(self._looks)

    def __hash__(self) -> int:
        return self._hash  # it is in the keys of most tables, and one that is derived would ask its sources each time

    def __reduce__(self) -> tuple[Callable[..., ConstantData], tuple[str, np.ndarray | None]]:
        return _restored, (self.digest, self.array)


class Contents:
    """The one of all constants that hold the same, or are derived alike."""

    def __init__(self) -> None:
        self._known: Final = dict[object, ConstantData]()

    def of(self, array: np.ndarray) -> ConstantData:
        """That with the content of an ``array``."""
        known = self._known.get(id(array))
        if known is None or known.held is not array:
            data = ConstantData.of(array)
            known = self._known.setdefault(data, data)
            self._known[id(known.held)] = known
        return known

    def derived(self, derivation: Derivation) -> ConstantData:
        """That which is derived like this."""
        data = ConstantData(None, None, derivation)
        return self._known.setdefault(data, data)


def _owned(array: np.ndarray) -> np.ndarray:
    """A frozen copy, or the array itself where nobody can write it."""
    return array if _is_frozen(array) else _frozen(np.array(array, order="C", copy=True))


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
