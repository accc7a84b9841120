"""Arrays that lie against pages nobody may touch: code that leaves its arrays faults, code that needs alignment too.

    |no access| shift, array ...... rest |no access|      placed at the front
    |no access| rest ...... array, shift |no access|      placed at the back

What lies beside the array up to the pages has a pattern, so that a write there shows as well.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelgen.errors import BackendUnavailable

Array = np.ndarray[Any, Any]

SHIFTS = (0, 4, 8, 16, 32)
"""Bytes between a page and an array, where elements of its type may lie so."""
PATTERN = 0xA5
_NO_ACCESS = 0  # PROT_NONE


@dataclass(frozen=True)
class Placement:
    """Against which page arrays lie, and how far from it."""

    at_back: bool
    shift: int

    def __str__(self) -> str:
        return f"{'back' if self.at_back else 'front'}, {self.shift} bytes from the page"

    def shift_of(self, dtype: np.dtype[Any]) -> int:
        """The shift for elements of a type, 0 where they would not be aligned."""
        return 0 if self.shift % dtype.alignment else self.shift


def placements(arrays: Sequence[Array]) -> tuple[Placement, ...]:
    """Both ends, and every shift that moves one of the arrays."""
    return tuple(
        place
        for shift in SHIFTS
        for at_back in (False, True)
        if any((place := Placement(at_back, shift)).shift_of(array.dtype) == shift for array in arrays)
    )


class Fenced:
    """Room for one array between two pages without access."""

    def __init__(self, name: str, like: Array) -> None:
        self.name = name
        self._like = like
        page = mmap.PAGESIZE
        room = -(-(like.nbytes + max(SHIFTS)) // page) * page
        self._memory = mmap.mmap(-1, room + 2 * page)
        self._bytes = np.frombuffer(self._memory, np.uint8, room, page)
        self.start = self._bytes.ctypes.data
        _deny(self.start - page, page)
        _deny(self.start + room, page)
        self._span = slice(0, 0)

    def place(self, placement: Placement) -> Array:
        """A copy of the array in this place, with the pattern around it."""
        shift, size = placement.shift_of(self._like.dtype), self._like.nbytes
        first = self._bytes.size - size - shift if placement.at_back else shift
        self._span = slice(first, first + size)
        self._bytes[:first] = self._bytes[first + size :] = PATTERN
        found = self._bytes[self._span].view(self._like.dtype).reshape(self._like.shape)
        found[...] = self._like
        return found

    @property
    def is_spoiled(self) -> bool:
        """Whether something beside the array was written."""
        beside = (self._bytes[: self._span.start], self._bytes[self._span.stop :])
        return any(bool((part != PATTERN).any()) for part in beside)

    @property
    def span(self) -> tuple[int, int]:
        """The first address of the array, and the first one behind it."""
        return self.start + self._span.start, self.start + self._span.stop


@dataclass(frozen=True)
class Touch:
    """Where a fault's address lies: ``where`` says it by an array's name."""

    address: int
    spans: tuple[tuple[str, int, int], ...]

    def __str__(self) -> str:
        if not self.address:
            return "an access that is not aligned as its instruction demands"
        if not self.spans:
            return f"address {self.address:#x}"
        name, start, stop = min(self.spans, key=lambda span: _apart(self.address, span[1], span[2]))
        if self.address < start:
            return f"{start - self.address} bytes before {name}"
        return f"{self.address - stop} bytes behind the end of {name}"

    @classmethod
    def of(cls, address: int, spans: Sequence[Sequence[Any]]) -> Self:
        """From an address and (name, start, stop) of each array, as they are stored."""
        return cls(address, tuple((str(name), int(start), int(stop)) for name, start, stop in spans))


def _apart(address: int, start: int, stop: int) -> int:
    return start - address if address < start else max(0, address - stop + 1)


def _deny(address: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _NO_ACCESS):
        raise BackendUnavailable(f"pages cannot be protected: error {ctypes.get_errno()} of mprotect")
