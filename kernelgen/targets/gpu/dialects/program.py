"""What to launch for a nest: its grids in order, each with its kernel, sizes and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgen.nest import index as ix
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import Accumulate, Alloc, AsyncCopy, Copy, Grid, Index, Nest, Num, Space, Store
from kernelgen.nest.walk import loads_of, statements, stored_buffers
from kernelgen.transforms.gpu.cache_rows import padded_bytes

STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that a kernel may declare; more has to be asked for at the launch."""

NONE: Index = Num(0)


@dataclass(frozen=True)
class Launch:
    """One kernel of a program. Its parameters are the buffers in order, then every symbol of the nest as ``long long``.

    There are no blocks where the sizes ask for another launch in its place.
    """

    kernel: str  # name of the __global__ function in the source
    blocks: Index  # grid.x over the nest's symbols
    threads: tuple[int, int, int]
    shared_bytes: int  # of arrays of known size: dynamic where above 48 KB, else declared
    buffers: tuple[int, ...]  # positions in nest.buffers, in parameter order
    rows: Index = NONE  # bytes of shared arrays whose size symbols decide
    most_rows: int = 0  # of which there are so many at most where the launch has blocks

    @property
    def most_dynamic_shared(self) -> int:
        """Bytes of shared memory that the launch asks for at most."""
        return self._asked + self.most_rows

    def dynamic_shared(self, symbols: Mapping[str, int]) -> int:
        """Bytes of shared memory to ask for at the launch, for sizes of the nest's symbols."""
        return self._asked + extent(self.rows, symbols)

    @property
    def _asked(self) -> int:
        """All that arrays of known size need, where it is more than a kernel may declare."""
        return self.shared_bytes if self.shared_bytes > STATIC_SHARED else 0


def launches(nest: Nest) -> tuple[Launch, ...]:
    """The launches of a distributed nest, in order; each may start when the one before it is done."""
    grids = (part for part in nest.body.statements if isinstance(part, Grid))
    return tuple(launch_of(grid, nest) for grid in grids)


def launch_of(grid: Grid, nest: Nest) -> Launch:
    """The launch of one grid."""
    used, sizes = touched(grid), shared_layout(grid)
    buffers = tuple(k for k, buffer in enumerate(nest.buffers) if buffer.name in used)
    known = sum(size.value for size in sizes.values() if isinstance(size, Num))
    rows: Index = Num(0)
    for size in sizes.values():
        rows = rows if isinstance(size, Num) else ix.add(rows, size)
    limits = [c.right.value for c in grid.when if c.left == rows and c.op == "<=" and isinstance(c.right, Num)]
    return Launch(grid.name, _blocks(grid), (*grid.threads, 1), known, buffers, rows, min(limits, default=0))


def _blocks(grid: Grid) -> Index:
    """The number of blocks, 0 where a condition does not hold: ``a <= b`` is ``max(0, min(1, b - a + 1))``."""
    found = grid.blocks
    for condition in grid.when:
        least = {"<": 0, "<=": 1}[condition.op]
        margin = ix.add(ix.subtract(condition.right, condition.left), Num(least))
        found = ix.multiply(found, ix.maximum(Num(0), ix.minimum(Num(1), margin)))
    return found


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


def written(grid: Grid) -> frozenset[str]:
    """The names of the buffers that a grid writes."""
    return stored_buffers(grid) | {part.target.name for part in statements(grid) if isinstance(part, Copy)}


def shared_layout(grid: Grid) -> dict[str, Index]:
    """The shared arrays of a grid and the bytes that each takes, a multiple of the alignment, in order."""
    made = [part.buffer for part in statements(grid) if isinstance(part, Alloc) and part.buffer.space is Space.SHARED]
    return {buffer.name: padded_bytes(buffer) for buffer in made}


def dynamic_places(grid: Grid, launch: Launch) -> dict[str, Index]:
    """Where each array that the kernel does not declare is in the memory that the launch gives: known sizes first."""
    sizes = shared_layout(grid)
    asked = [name for name, size in sizes.items() if isinstance(size, Num) and launch.shared_bytes > STATIC_SHARED]
    places: dict[str, Index] = {}
    at: Index = Num(0)
    for name in (*asked, *(name for name, size in sizes.items() if not isinstance(size, Num))):
        places[name], at = at, ix.add(at, sizes[name])
    return places
