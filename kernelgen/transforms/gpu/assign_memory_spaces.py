"""Decides for each local of a grid whether every thread has its own or the threads of a block share it.

A local is private when it is made by one thread (inside a thread loop, or in a grid without any), when each of its
elements is touched by one thread only, or when it is small and written by code that all threads run alike. Else it is
shared. What the arrays of a launch take together above a limit is in the memory of the device, in an array with a part
for each block:

    block i in 0..M { alloc e[N] ... e[j]     ->     workspace e[M, N];  block i in 0..M { ... e[i, j]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelgen.machines.gpu.device import GpuMachine
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import Moved, loads_of, move, replace_buffers, statements
from kernelgen.tensor.dims import product
from kernelgen.transforms.gpu.delinearise import block_loops
from kernelgen.transforms.gpu.thread_ownership import Chain, chain_at, is_thread_loop

SMALL_BYTES = 256
"""Of one array of a thread: it shall stay in registers."""

UNROLLED = 32
"""Turns of a thread loop that are written out: only then are places in an array known, and the array is registers."""


@dataclass(frozen=True)
class Touch:
    """An access of a buffer: the thread loops around it, and whether it writes."""

    buffer: n.Buffer
    index: tuple[n.Index, ...]
    writes: bool
    chain: Chain | None


def touches(part: n.Statement, chain: Chain | None = None) -> Iterator[Touch]:
    """All accesses inside, in textual order; reads of a statement before its write."""
    if isinstance(part, n.Block):
        for inner in part.statements:
            yield from touches(inner, chain)
    elif is_thread_loop(part) and chain is None:
        found = chain_at(part)
        yield from touches(found.body, found)
    elif isinstance(part, n.For | n.If | n.Grid):
        yield from touches(part.body, chain)
    else:
        for load in loads_of(part):
            yield Touch(load.buffer, load.index, False, chain)
        if isinstance(part, n.Store | n.Accumulate):
            yield Touch(part.buffer, part.index, True, chain)


def places(nest: n.Nest, device: GpuMachine) -> n.Nest:
    """The nest, cut into grids, whose locals are private or shared."""
    grids: list[n.Statement] = []
    made: list[n.Buffer] = []
    for part in nest.body.statements:
        if isinstance(part, n.Grid):
            body, spilled = _within_limit(_placed(part.body), device.array_bytes)
            part = replace(part, body=body)
            made += spilled
        grids.append(part)
    return replace(nest, buffers=(*nest.buffers, *made), body=n.Block(tuple(grids)))


def _within_limit(body: n.Block, limit: int) -> tuple[n.Block, list[n.Buffer]]:
    """The body whose shared arrays fit together, and those that went to the memory of the device: the first ones stay."""
    loops, _ = block_loops(body)
    extents = [loop.upper.value for loop in loops if isinstance(loop.upper, n.Num) and loop.lower == n.Num(0)]
    if len(extents) < len(loops):
        return body, []
    left, spilled = limit, list[n.Buffer]()
    for part in list(statements(body)):
        if not isinstance(part, n.Alloc) or part.buffer.space is not n.Space.SHARED:
            continue
        left -= _bytes(part.buffer)
        if left < 0:
            left += _bytes(part.buffer)
            new = replace(part.buffer, shape=(*extents, *part.buffer.shape), space=n.Space.WORKSPACE)
            lead = tuple(n.Var(loop.var) for loop in loops)
            dims = tuple(range(len(part.buffer.shape)))
            body = _without(move(body, {new.name: Moved(new, dims, lead)}), new.name)
            spilled.append(new)
    return body, spilled


def _without(block: n.Block, name: str) -> n.Block:
    """The block without the allocation of a buffer."""
    parts = [s for s in block.statements if not (isinstance(s, n.Alloc) and s.buffer.name == name)]
    return n.Block(tuple(replace(s, body=_without(s.body, name)) if isinstance(s, n.For | n.If) else s for s in parts))


def _placed(body: n.Block) -> n.Block:
    has_threads = any(is_thread_loop(s) for s in statements(body))
    made = [s.buffer for s in statements(body) if isinstance(s, n.Alloc) and s.buffer.space is n.Space.LOCAL]
    inner = {
        s.buffer.name
        for loop in statements(body)
        if is_thread_loop(loop)
        for s in statements(loop)
        if isinstance(s, n.Alloc)
    }
    every = list(touches(body))
    for buffer in made:
        own = [touch for touch in every if touch.buffer.name == buffer.name]
        alone = not has_threads or buffer.name in inner
        private = alone or _is_uniform(buffer, own) or owned_dims(buffer, own) is not None
        space = n.Space.PRIVATE if private else n.Space.SHARED
        body = replace_buffers(body, {buffer.name: replace(buffer, space=space)})
    return body


def _is_uniform(buffer: n.Buffer, own: list[Touch]) -> bool:
    """Small, and written outside of thread loops only: every thread keeps a copy."""
    return _bytes(buffer) <= SMALL_BYTES and not any(touch.writes and touch.chain is not None for touch in own)


def owned_dims(buffer: n.Buffer, own: list[Touch]) -> tuple[int, ...] | None:
    """The dims along which an array is dealt to the threads: each element is touched by one of them; else None."""
    deals: set[tuple[object, ...]] = set()
    for touch in own:
        dims = touch.chain.owned_dims(touch.index) if touch.chain is not None else None
        if touch.chain is None or dims is None:
            return None
        deals.add((touch.chain.deal, dims))
    if len(deals) != 1 or own[0].chain is None:
        return None
    chain, dims = own[0].chain, own[0].chain.owned_dims(own[0].index)
    if not isinstance(chain.length, n.Num) or dims is None:
        return None
    rest = product(d for k, d in enumerate(buffer.shape) if k not in dims)
    share = -(-chain.length.value // chain.threads)
    fits = isinstance(rest, int) and rest * share * buffer.dtype.itemsize <= SMALL_BYTES and share <= UNROLLED
    return dims if fits else None


def _bytes(buffer: n.Buffer) -> int:
    size = product(buffer.shape)
    return size * buffer.dtype.itemsize if isinstance(size, int) else SMALL_BYTES + 1
