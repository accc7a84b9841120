"""Which bytes an operand touches, as nested strides, so that numpy takes them in one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kernelgen.system.cached_property import cached_property

SLACK = 1 << 16
"""Bytes behind every memory's end: lanes that a mask switches off may lie there, and are never looked at."""


@dataclass(frozen=True)
class Region:
    """``length`` bytes at ``start + i * stride_i + j * stride_j + ...`` for the (count, stride) of ``dims``."""

    start: int
    dims: tuple[tuple[int, int], ...]
    length: int

    @cached_property
    def stop(self) -> int:
        """One past the last byte."""
        return self.start + sum((count - 1) * stride for count, stride in self.dims) + self.length

    @property
    def size(self) -> int:
        """How many bytes, counting those twice that two steps share."""
        return int(np.prod([count for count, _ in self.dims], dtype=np.int64)) * self.length

    def meets(self, other: Region) -> bool:
        """Whether two regions share a byte."""
        if self.stop <= other.start or other.stop <= self.start:
            return False
        return not (self.dims or other.dims) or _pieces_meet(self, other)

    def view(self, array: np.ndarray) -> np.ndarray:
        """The part of an array that has one element for each byte."""
        if not self.dims:
            return array[self.start : self.start + self.length]
        unit = array.itemsize
        shape = (*(count for count, _ in self.dims), self.length)
        strides = (*(stride * unit for _, stride in self.dims), unit)
        return np.ndarray(shape, array.dtype, array, self.start * unit, strides)

    def intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """First bytes and ends of the contiguous pieces."""
        starts = np.array([self.start], np.int64)
        for count, stride in self.dims:
            starts = (starts[:, None] + np.arange(count, dtype=np.int64) * stride).ravel()
        return starts, starts + self.length


@lru_cache(maxsize=4096)
def _pieces_meet(first: Region, second: Region) -> bool:
    """Whether a piece of one begins before a piece of the other ends, and ends after it begins."""
    starts = np.sort(first.intervals()[0])
    low, high = second.intervals()
    return bool((np.searchsorted(starts, low - first.length, "right") < np.searchsorted(starts, high, "left")).any())


def region(start: int, dims: Sequence[tuple[int, int]], length: int) -> Region:
    """The region with dims of one step left out, and inner steps that follow each other joined."""
    kept = [(count, stride) for count, stride in dims if count != 1]
    while kept and kept[-1][1] == length:
        length *= kept.pop()[0]
    return Region(start, tuple(kept), length)


def typed(data: np.ndarray, dtype: np.dtype, start: int, dims: Sequence[tuple[int, int]], elements: int) -> np.ndarray:
    """The elements ``(dims..., elements)`` of a memory's bytes, as a view that can be written."""
    shape = (*(count for count, _ in dims), elements)
    strides = (*(stride for _, stride in dims), dtype.itemsize)
    return np.ndarray(shape, dtype, data, start, strides)


def masked_regions(
    start: int, repeats: tuple[int, int], block_stride: int, itemsize: int, mask: np.ndarray
) -> Iterator[Region]:
    """The bytes of the lanes that ``mask`` switches on, in every repeat; ``repeats`` is (count, stride in bytes)."""
    per_block = 32 // itemsize
    blocks = mask.reshape(-1, per_block)
    full = int(np.argmin(blocks.all(axis=1))) if not blocks.all() else len(blocks)
    if full:
        yield region(start, (repeats, (full, block_stride)), 32)
    for block in range(full, len(blocks)):
        edges = np.flatnonzero(np.diff(np.concatenate(([False], blocks[block], [False]))))
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            yield region(start + block * block_stride + first * itemsize, (repeats,), (last - first) * itemsize)
