"""Memory for large arrays: aligned, staggered, on huge pages, and used again when an array dies.

Fresh pages cost more than most kernels: filling 64 MB of them takes 9 ms, filling them again 3 ms. Arrays that all start at
the same place of a page compete for the same cache sets when a kernel walks through them together, hence the staggering.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import weakref
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import DTypeLike

POOLED_BYTES = 1 << 20
"""Smaller arrays come from numpy: their pages are warm anyway."""

PAGE_BYTES = 2 << 20
ALIGNMENT = 64
STAGGER_BYTES = 17 * ALIGNMENT
STAGGERS = 16


@dataclass(eq=False)
class Pool:
    """Free blocks by size; at most ``capacity`` bytes are kept."""

    capacity: int = 1 << 30
    free_bytes: int = 0
    _free: dict[int, list[mmap.mmap]] = field(default_factory=lambda: defaultdict(list))
    _leases: int = 0

    def empty(self, shape: Sequence[int], dtype: DTypeLike = np.float32) -> np.ndarray:
        """An uninitialised C-contiguous array; a large one goes back to the pool when it and all its views are gone."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        if size < POOLED_BYTES:
            return np.empty(shape, dtype)
        block = self._take(_rounded_up(size + STAGGER_BYTES * STAGGERS) + PAGE_BYTES)
        self._leases += 1
        offset = -_address(block) % PAGE_BYTES + self._leases % STAGGERS * STAGGER_BYTES
        whole = np.ndarray(len(block), np.uint8, block)
        weakref.finalize(whole, self._give_back, block).atexit = False  # all views have this array as their base
        return whole[offset : offset + size].view(dtype).reshape(shape)

    def clear(self) -> None:
        """Returns all free blocks to the system."""
        self._free.clear()
        self.free_bytes = 0

    def _take(self, size: int) -> mmap.mmap:
        with suppress(IndexError):  # another thread may take the last one at any moment
            block = self._free[size].pop()
            self.free_bytes -= size
            return block
        block = mmap.mmap(-1, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(mmap.MADV_HUGEPAGE)
        return block

    def _give_back(self, block: mmap.mmap) -> None:
        if self.free_bytes + len(block) <= self.capacity:
            self._free[len(block)].append(block)
            self.free_bytes += len(block)


@cache
def default_pool() -> Pool:
    """The pool that the whole process shares."""
    return Pool()


def empty(shape: Sequence[int], dtype: DTypeLike = np.float32) -> np.ndarray:
    """An array of the shared pool."""
    return default_pool().empty(shape, dtype)


def _rounded_up(size: int) -> int:
    """Whole huge pages, in steps of an eighth of the size, so that arrays of nearly one size share blocks."""
    step = max(PAGE_BYTES, 1 << max(size.bit_length() - 4, 0))
    return -(-size // step) * step


def _address(block: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(block))
