"""Arrays that lie in a file which is mapped: their pages can go at any time, and come back from the file when they are read."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE
MUCH = 1 << 16
"""Bytes of an array from which on it is worth a call of the system."""


def let_go(array: np.ndarray) -> None:
    """Takes the pages of a read-only array out of memory where they lie in a file; any other array stays as it is."""
    file = _file_of(array)
    if array.nbytes < MUCH or file is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = array.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
    before = start % PAGE
    file.madvise(mmap.MADV_DONTNEED, start - before, min(before + array.nbytes, len(file) - start + before))


def _file_of(array: np.ndarray) -> mmap.mmap | None:
    """The mapping whose memory an array is a view of, if nobody can write through it."""
    held: Any = array  # numpy's base may be of any type
    while isinstance(held, np.ndarray | memoryview):
        held = held.base if isinstance(held, np.ndarray) else held.obj
    return held if isinstance(held, mmap.mmap) and memoryview(held).readonly else None
