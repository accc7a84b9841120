"""Who the lanes of a gang are: every thread of some blocks, in order of block, then of thread.

A gang runs as one vector, since numpy's cost for an operation on 256 lanes and on 4096 is nearly the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.system.cached_property import cached_property

WARP = 32
MOST_THREADS = 1024  # of a block; an identity keeps the thread in its low 10 bits
MOST_BLOCKS = 1 << 21  # that run; an identity has 31 bits
THREAD_BITS = 10
Extent = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Lanes:
    """The lanes of the blocks ``blocks``, given by their linear numbers in the grid.

    Of all blocks that run, in the order in which they do, these are those from place ``first`` on.
    """

    grid: Extent
    block: Extent
    blocks: tuple[int, ...]
    first: int = 0

    @cached_property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def count(self) -> int:
        """Lanes of the gang."""
        return self.threads * len(self.blocks)

    @cached_property
    def warps_per_block(self) -> int:
        """Warps of one block; the last may be partly filled."""
        return -(-self.threads // WARP)

    @cached_property
    def thread(self) -> np.ndarray:
        """The linear thread number within the block."""
        return np.tile(np.arange(self.threads, dtype=np.int64), len(self.blocks))

    @cached_property
    def slot(self) -> np.ndarray:
        """Which of the gang's blocks."""
        return np.repeat(np.arange(len(self.blocks), dtype=np.int64), self.threads)

    @cached_property
    def block_number(self) -> np.ndarray:
        """The linear block number in the grid."""
        return np.repeat(np.asarray(self.blocks, dtype=np.int64), self.threads)

    @cached_property
    def lane(self) -> np.ndarray:
        """The lane within the warp."""
        return self.thread % WARP

    @cached_property
    def warp(self) -> np.ndarray:
        """The warp, numbered through the gang."""
        return self.slot * self.warps_per_block + self.thread // WARP

    @cached_property
    def identity(self) -> np.ndarray:
        """One number for each thread that runs: the place of its block among those, then 10 bits of the thread."""
        return (self.slot + self.first) << THREAD_BITS | self.thread

    @cached_property
    def warp_size(self) -> np.ndarray:
        """How many threads each lane's warp has: 32 but for the last of a block."""
        return np.minimum(WARP, self.threads - (self.thread - self.lane))

    def name(self, position: int) -> str:
        """A lane as a person would write it."""
        return f"block {_coordinates(int(self.block_number[position]), self.grid)} thread " + _coordinates(
            int(self.thread[position]), self.block
        )

    def special(self, name: str) -> np.ndarray | None:
        """The value of a special register as 32 bits, None for one that is not known."""
        base, _, axis = name.removeprefix("%").partition(".")
        if axis in ("x", "y", "z"):
            return self._coordinate(base, "xyz".index(axis))
        return self._single(base)

    def _coordinate(self, base: str, axis: int) -> np.ndarray | None:
        match base:
            case "tid":
                return _along(self.thread, self.block, axis).astype(np.uint32)
            case "ctaid":
                return _along(self.block_number, self.grid, axis).astype(np.uint32)
            case "ntid":
                return np.array(self.block[axis], dtype=np.uint32)
            case "nctaid":
                return np.array(self.grid[axis], dtype=np.uint32)
            case _:
                return None

    def _single(self, base: str) -> np.ndarray | None:
        lane = self.lane.astype(np.uint32)
        bit = np.uint32(1) << lane
        match base:
            case "laneid":
                return lane
            case "warpid":
                return (self.thread // WARP).astype(np.uint32)
            case "nwarpid":
                return np.array(self.warps_per_block, dtype=np.uint32)
            case "lanemask_eq":
                return bit
            case "lanemask_lt":
                return bit - np.uint32(1)
            case "lanemask_le":
                return bit - np.uint32(1) | bit
            case "lanemask_gt":
                return ~(bit - np.uint32(1) | bit)
            case "lanemask_ge":
                return ~(bit - np.uint32(1))
            case _:
                return None


def extent(given: int | Sequence[int]) -> Extent:
    """Three numbers from one, two or three. Raises ValueError for others or for an empty extent."""
    numbers = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise ValueError(f"a grid or block is one to three positive numbers, not {given!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _along(linear: np.ndarray, sizes: Extent, axis: int) -> np.ndarray:
    stride = 1
    for size in sizes[:axis]:
        stride *= size
    return linear // stride % sizes[axis]


def _coordinates(linear: int, sizes: Extent) -> str:
    x, y, z = linear % sizes[0], linear // sizes[0] % sizes[1], linear // (sizes[0] * sizes[1])
    return f"({x}, {y}, {z})" if sizes[2] > 1 else f"({x}, {y})" if sizes[1] > 1 else str(x)
