"""Memory of intermediates: each lives from its step to its last use, and all share one arena."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from kernelgen.system.named_tuples import NamedTuple

Array = np.ndarray[Any, np.dtype[Any]]

ALIGNMENT = 64  # a cache line, and the widest vector
ALIGNED_FROM = 1 << 12  # bytes; to align an array takes 2 us, longer than smaller ones take to be read across lines
HUGE_PAGE = 2 << 20
HUGE_FROM = 4 << 20  # bytes; smaller arrays gain nothing from huge pages


class Lifetime(NamedTuple):
    """A buffer of ``size`` bytes, written by step ``first`` and last read by step ``last``."""

    size: int
    first: int
    last: int


def place(lifetimes: Sequence[Lifetime]) -> tuple[tuple[int, ...], int]:
    """Byte offsets such that buffers alive at one time are disjoint, and the size of the arena.

    Largest first, each at the lowest offset that is free for its whole life.
    Source: the greedy-by-size strategy of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference".
    """
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    total = 0
    for index in sorted(range(len(lifetimes)), key=lambda i: (-lifetimes[i].size, i)):
        mine = lifetimes[index]
        size = _rounded(mine.size)
        meanwhile = [other for other in placed if _overlap(mine, lifetimes[other])]
        offset = 0
        for other in sorted(meanwhile, key=lambda i: offsets[i]):
            if offsets[other] - offset >= size:
                break
            offset = max(offset, offsets[other] + _rounded(lifetimes[other].size))
        offsets[index] = offset
        placed.append(index)
        total = max(total, offset + size)
    return tuple(offsets), total


def aligned_bytes(size: int) -> Array:
    """Uninitialised bytes that start at a cache line; large blocks start at a huge page, so that the system maps one."""
    alignment = HUGE_PAGE if size >= HUGE_FROM else ALIGNMENT
    raw = np.empty(size + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + size]


def aligned_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialised array, which starts at a cache line if it has some."""
    size = prod(shape) * dtype.itemsize
    if size < ALIGNED_FROM:
        return np.empty(shape, dtype)
    return view_of(aligned_bytes(size), 0, shape, dtype)


def view_of(arena: Array, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The array of this ``shape`` and ``dtype`` at an ``offset`` in bytes of the ``arena``."""
    size = prod(shape) * dtype.itemsize
    return arena[offset : offset + size].view(dtype).reshape(shape)


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _overlap(a: Lifetime, b: Lifetime) -> bool:
    return a.first <= b.last and b.first <= a.last
