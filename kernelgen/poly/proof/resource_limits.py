"""Proof about a grid as it is printed: a block of it fits the device, so that no launch is refused for what it asks for.

    alloc shared left[4, 128, 40], right[4, 32, 264]        108,544 bytes <= 232,448, 256 threads <= 1,024

Arrays of unknown size are bounded by the condition under which their grid is launched. Registers are the compiler's part:
it is told how many threads a block has.
"""

from __future__ import annotations

from kernelgen.errors import UnsupportedError
from kernelgen.machines.gpu.device import MOST_THREADS, GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Alloc, Grid, Index, Nest, Num, Space
from kernelgen.nest.walk import statements
from kernelgen.poly.proof.schedule_proof import Fact
from kernelgen.transforms.gpu.cache_rows import padded_bytes


def prove_room(nest: Nest, device: GpuMachine) -> tuple[Fact, ...]:
    """A fact for each grid. Raises UnsupportedError("too-large") for one that the device has no room for."""
    return tuple(_fits(part, device) for part in nest.body.statements if isinstance(part, Grid))


def _fits(grid: Grid, device: GpuMachine) -> Fact:
    used, threads = _shared_bytes(grid), grid.threads[0] * grid.threads[1]
    if used is None or used > device.shared_bytes or threads > MOST_THREADS:
        asked = f"{'an unknown number of' if used is None else used} bytes of shared memory and {threads} threads"
        raise UnsupportedError(
            "too-large",
            f"a block of {grid.name} asks for {asked}, a device has {device.shared_bytes} and {MOST_THREADS}",
        )
    return Fact("room", grid.name, f"{{ {used} > {device.shared_bytes} or {threads} > {MOST_THREADS} }}")


def _shared_bytes(grid: Grid) -> int | None:
    """What the arrays of a block take at most; None where nothing bounds it."""
    sizes = [
        padded_bytes(s.buffer) for s in statements(grid) if isinstance(s, Alloc) and s.buffer.space is Space.SHARED
    ]
    known = sum(size.value for size in sizes if isinstance(size, Num))
    unknown: Index = Num(0)
    for size in sizes:
        unknown = unknown if isinstance(size, Num) else ix.add(unknown, size)
    if unknown == Num(0):
        return known
    limits = (c.right.value for c in grid.when if c.left == unknown and c.op == "<=" and isinstance(c.right, Num))
    limit = min(limits, default=None)
    return None if limit is None else known + limit
