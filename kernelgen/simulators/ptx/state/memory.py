"""State spaces as bytes: the launch's buffers, each block's shared memory, each thread's local memory.

Every space has a range of addresses of its own, so that an address says where it points, and a generic address
is the same number. Buffers lie far apart, in the middle of a range each: an access outside of one never hits another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelgen.simulators.ptx.language.nodes import Variable

RANGE_BITS = 36
SHARED_NAME, LOCAL_NAME = "shared memory", "local memory"
MIDDLE = 1 << (RANGE_BITS - 1)
SHARED_RANGE = 1 << 20  # ranges of the windows; buffers have the numbers below
LOCAL_RANGE = SHARED_RANGE + 1
SHARED_BASE = SHARED_RANGE << RANGE_BITS | MIDDLE
LOCAL_BASE = LOCAL_RANGE << RANGE_BITS | MIDDLE
PADDING = 16  # the widest access, so that views of every type cover the last bytes
RED_ZONE = 1024  # unused bytes between shared variables; a multiple of all banks, so that conflicts stay the same


@dataclass(eq=False)
class Region:
    """Bytes that addresses lead to: ``copies`` of ``size`` bytes, one for each block, thread or (global) in all."""

    name: str
    space: str
    base: int
    size: int
    copies: int = 1
    storage: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    holes: Sequence[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        self.stride = -(-self.size // PADDING) * PADDING
        if not len(self.storage):
            self.storage = np.zeros(self.stride * self.copies + PADDING, np.uint8)
        self._views: dict[np.dtype, np.ndarray] = {}

    @property
    def number(self) -> int:
        """The place of a buffer among the buffers of the launch; some large number for other regions."""
        return (self.base >> RANGE_BITS) - 1

    def view(self, dtype: np.dtype) -> np.ndarray:
        """The bytes as numbers; index = byte offset / size of a number."""
        if dtype not in self._views:
            usable = len(self.storage) // dtype.itemsize * dtype.itemsize
            self._views[dtype] = self.storage[:usable].view(dtype)
        return self._views[dtype]

    def outside(self, offsets: np.ndarray, width: int) -> np.ndarray | None:
        """Which accesses leave the region or touch a hole between variables, None for none."""
        low, high = int(offsets.min()), int(offsets.max())
        wrong = None
        if low < 0 or high + width > self.size:
            wrong = (offsets < 0) | (offsets + width > self.size)
        for start, stop in self.holes:
            inside = (offsets + width > start) & (offsets < stop)
            if inside.any():
                wrong = inside if wrong is None else wrong | inside
        return wrong


def blank_region(number: int, name: str, size: int) -> Region:
    """A buffer of zeros."""
    return Region(name, "global", (number + 1) << RANGE_BITS | MIDDLE, size)


def buffer_region(number: int, name: str, data: np.ndarray) -> Region:
    """A buffer of the launch; the bytes are copied, :func:`give_back` returns them."""
    bytes_given = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    region = blank_region(number, name, len(bytes_given))
    region.storage[: region.size] = bytes_given
    return region


def give_back(region: Region, data: np.ndarray) -> None:
    """Writes a buffer's bytes into the array that it was made from."""
    if data.flags.writeable:
        data[...] = region.storage[: region.size].view(data.dtype).reshape(data.shape)


@dataclass(frozen=True)
class Layout:
    """Where variables lie in their space: addresses by name, the size of the whole, holes between them."""

    addresses: Mapping[str, int]
    size: int
    holes: Sequence[tuple[int, int]] = ()


def lay_out(variables: Sequence[Variable], base: int, dynamic_bytes: int = 0, red_zone: int = 0) -> Layout:
    """Variables one behind the other, aligned; the one without a size comes last and gets ``dynamic_bytes``.

    A red zone is a hole behind each variable but the last: an index just outside of one does not hit its neighbour.
    """
    addresses, holes, end = dict[str, int](), list[tuple[int, int]](), 0
    for variable in sorted(variables, key=lambda one: not one.size):
        if red_zone and addresses:
            holes.append((end, end + red_zone))
            end += red_zone
        start = -(-end // variable.align) * variable.align
        addresses[variable.name] = base + start
        end = start + (variable.size or dynamic_bytes)
    return Layout(addresses, end, tuple(holes))


@dataclass(frozen=True)
class Part:
    """The lanes of a frame that hit one region: their places in the frame (None: all) and offsets in bytes."""

    region: Region
    places: np.ndarray | None
    offsets: np.ndarray


class Memory:
    """The regions that a gang can reach."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self.regions = {region.base >> RANGE_BITS: region for region in regions}

    def parts(self, addresses: np.ndarray) -> Iterator[Part | np.ndarray]:
        """Addresses by region; places that lie in none come as a bare array."""
        ranges = addresses >> np.uint64(RANGE_BITS)
        lowest = int(ranges.min())
        if lowest == int(ranges.max()):
            yield self._part(lowest, None, addresses)
            return
        for number in np.unique(ranges):
            places = np.flatnonzero(ranges == number)
            yield self._part(int(number), places, addresses[places])

    def _part(self, number: int, places: np.ndarray | None, addresses: np.ndarray) -> Part | np.ndarray:
        region = self.regions.get(number)
        if region is None:
            return np.arange(len(addresses)) if places is None else places
        return Part(region, places, addresses.view(np.int64) - region.base)
