"""Launches that show what a kernel's order needs: many turns on one core, one turn on each; sizes of many turns and of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelgen.ascendc.instructions import Kernel
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import Alloc, For, LoopKind, Nest
from kernelgen.nest.walk import statements
from kernelgen.simulators.ascendc.launch import meets
from kernelgen.simulators.ascendc.outline import Launch
from kernelgen.targets.ascend.lower.launch import blocks_of, copies_of_locals
from kernelgen.targets.ascend.lower.program.scope import linear_size, local_size, parameter_of

FEW, MANY, SEVERAL = 1, 4 * 8192 + 13, 5
"""Sizes of one turn, of more than four turns of the longest vectors, and of more than four turns of a loop over rows."""


def launches(nest: Nest, kernel: Kernel, machine: Machine) -> Iterator[Launch]:
    """Launches of a nest's kernel, those that need most first."""
    for sizes in _sizes(nest.symbols):
        most = blocks_of(nest, machine, sizes)
        least = min(2, most) if meets(kernel) else 1
        last = sorted({min(turns, most) - 1 for turns in _dealt(nest, sizes)} | {0})
        yield launch(nest, kernel, sizes, least)
        if most > least:
            yield launch(nest, kernel, sizes, most, tuple(last))


def _dealt(nest: Nest, sizes: Mapping[str, int]) -> Iterator[int]:
    """The turns of each loop that is dealt to the cores, one at least."""
    for part in nest.body.statements:
        if isinstance(part, For) and part.kind is LoopKind.BLOCK:
            yield max(1, -(-(extent(part.upper, sizes) - extent(part.lower, sizes)) // part.step))


def launch(
    nest: Nest, kernel: Kernel, sizes: Mapping[str, int], blocks: int, looked_at: tuple[int, ...] = (0,)
) -> Launch:
    """A launch at some sizes."""
    own = {parameter_of(b): (b.dtype.numpy, max(32, extent(linear_size(b), sizes))) for b in nest.buffers}
    locals_ = (part.buffer for part in statements(nest.body) if isinstance(part, Alloc))
    more = {
        parameter_of(b): (b.dtype.numpy, local_size(b) * copies_of_locals(kernel, blocks))
        for b in locals_
        if parameter_of(b) in kernel.parameters
    }
    return Launch({**own, **more}, blocks, sizes, looked_at)


def _sizes(symbols: tuple[str, ...]) -> Iterator[Mapping[str, int]]:
    """Values of the size symbols."""
    if not symbols:
        yield {}
        return
    yield dict.fromkeys(symbols, SEVERAL)
    for chosen in symbols:
        yield {**dict.fromkeys(symbols, SEVERAL), chosen: MANY}
    for chosen in symbols:
        yield {**dict.fromkeys(symbols, FEW), chosen: MANY}
    yield dict.fromkeys(symbols, FEW)
