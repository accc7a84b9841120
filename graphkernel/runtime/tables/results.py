"""Memory of results, which is used again when nobody holds them any more.

The system clears each page of memory that it gives: a network that decodes a token returns the keys and values of all
others, whose pages took longer to get than to fill. What an executable returned and its user let go is where its next
result lies.
"""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy as np

from graphkernel.runtime.plan.buffers import HUGE_FROM, view_of

Array = np.ndarray[Any, np.dtype[Any]]

REUSED_FROM, REUSED_TO = 1 << 17, 1 << 26
"""Bytes: smaller memory is the process's already, and what is larger is worth its pages."""

MOST_KEPT = 2
"""Of one result: a step of a decoder reads what the one before returned."""


class Results:
    """Makes the arrays of one result."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> None:
        self.shape, self.dtype, self.size = shape, dtype, size
        self.free: list[mmap.mmap] = []

    def __call__(self) -> Array:
        """An array whose elements are not set yet; it starts at a cache line."""
        try:
            memory = self.free.pop()
        except IndexError:
            memory = _pages(self.size)
        whole = np.ndarray(self.size, np.uint8, memory)  # all views have it as their base
        weakref.finalize(whole, self._take_back, memory).atexit = False
        return view_of(whole, 0, self.shape, self.dtype)

    def _take_back(self, memory: mmap.mmap) -> None:
        if len(self.free) < MOST_KEPT:
            self.free.append(memory)


def _pages(size: int) -> mmap.mmap:
    """Memory of the system, which begins with a page, and which a child that is forked has for itself."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= HUGE_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
