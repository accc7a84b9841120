"""What to launch for a nest: its grids in order, each with its kernel, sizes and parameters."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.dims import product
from kernelgen.nest.nodes import Accumulate, Alloc, AsyncCopy, Copy, Grid, Index, Nest, Space, Store
from kernelgen.nest.walk import loads_of, statements

STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that a kernel may declare; more has to be asked for at the launch."""

SHARED_ALIGNMENT = 16


@dataclass(frozen=True)
class Launch:
    """One kernel of a program. Its parameters are the buffers in order, then every symbol of the nest as ``long long``."""

    kernel: str  # name of the __global__ function in the source
    blocks: Index  # grid.x over the nest's symbols
    threads: tuple[int, int, int]
    shared_bytes: int  # static + dynamic; dynamic where above 48 KB
    buffers: tuple[int, ...]  # positions in nest.buffers, in parameter order

    @property
    def dynamic_shared(self) -> int:
        """Bytes of shared memory to ask for at the launch: all of it where it is more than a kernel may declare."""
        return self.shared_bytes if self.shared_bytes > STATIC_SHARED else 0


def launches(nest: Nest) -> tuple[Launch, ...]:
    """The launches of a distributed nest, in order; each may start when the one before it is done."""
    grids = (part for part in nest.body.statements if isinstance(part, Grid))
    return tuple(launch_of(grid, nest) for grid in grids)


def launch_of(grid: Grid, nest: Nest) -> Launch:
    """The launch of one grid."""
    used = touched(grid)
    buffers = tuple(k for k, buffer in enumerate(nest.buffers) if buffer.name in used)
    return Launch(grid.name, grid.blocks, (*grid.threads, 1), sum(shared_layout(grid).values()), buffers)


def touched(grid: Grid) -> frozenset[str]:
    """The names of the buffers that a grid reads or writes."""
    found: set[str] = set()
    for part in statements(grid):
        found |= {load.buffer.name for load in loads_of(part)}
        if isinstance(part, Store | Accumulate):
            found.add(part.buffer.name)
        if isinstance(part, Copy | AsyncCopy):
            found |= {part.source.name, part.target.name}
    return frozenset(found)


def shared_layout(grid: Grid) -> dict[str, int]:
    """The shared arrays of a grid and the bytes that each takes, a multiple of the alignment, in order."""
    return {
        part.buffer.name: -(-_bytes(part) // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
        for part in statements(grid)
        if isinstance(part, Alloc) and part.buffer.space is Space.SHARED
    }


def _bytes(part: Alloc) -> int:
    size = product(part.buffer.shape)
    if not isinstance(size, int):
        raise AssertionError(f"shared array {part.buffer.name} has no constant size")
    return size * part.buffer.dtype.itemsize
