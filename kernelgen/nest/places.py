"""Decides for each local of a grid whether every thread has its own or the threads of a block share it.

A local is private when it is made by one thread (inside a thread loop, or in a grid without any), when each of its
elements is touched by one thread only, or when it is small and written by code that all threads run alike. Else it is
shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelgen.dims import product
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    For,
    Grid,
    If,
    Index,
    Nest,
    Num,
    Space,
    Statement,
    Store,
)
from kernelgen.nest.threads import Chain, chain_at, is_thread_loop
from kernelgen.nest.walk import loads_of, map_accesses, statements

SMALL_BYTES = 256
"""Of one array of a thread: it shall stay in registers."""


@dataclass(frozen=True)
class Touch:
    """An access of a buffer: the thread loops around it, and whether it writes."""

    buffer: Buffer
    index: tuple[Index, ...]
    writes: bool
    chain: Chain | None


def touches(part: Statement, chain: Chain | None = None) -> Iterator[Touch]:
    """All accesses inside, in textual order; reads of a statement before its write."""
    if isinstance(part, Block):
        for inner in part.statements:
            yield from touches(inner, chain)
    elif is_thread_loop(part) and chain is None:
        found = chain_at(part)
        yield from touches(found.body, found)
    elif isinstance(part, For | If | Grid):
        yield from touches(part.body, chain)
    else:
        for load in loads_of(part):
            yield Touch(load.buffer, load.index, False, chain)
        if isinstance(part, Store | Accumulate):
            yield Touch(part.buffer, part.index, True, chain)


def places(nest: Nest) -> Nest:
    """The nest, cut into grids, whose locals are private or shared."""
    grids = [replace(s, body=_placed(s.body)) if isinstance(s, Grid) else s for s in nest.body.statements]
    return replace(nest, body=Block(tuple(grids)))


def _placed(body: Block) -> Block:
    has_threads = any(is_thread_loop(s) for s in statements(body))
    made = [s.buffer for s in statements(body) if isinstance(s, Alloc) and s.buffer.space is Space.LOCAL]
    inner = {
        s.buffer.name
        for loop in statements(body)
        if is_thread_loop(loop)
        for s in statements(loop)
        if isinstance(s, Alloc)
    }
    every = list(touches(body))
    for buffer in made:
        own = [touch for touch in every if touch.buffer.name == buffer.name]
        alone = not has_threads or buffer.name in inner
        private = alone or _is_uniform(buffer, own) or owned_dims(buffer, own) is not None
        body = _moved(body, buffer, replace(buffer, space=Space.PRIVATE if private else Space.SHARED))
    return body


def _is_uniform(buffer: Buffer, own: list[Touch]) -> bool:
    """Small, and written outside of thread loops only: every thread keeps a copy."""
    return _bytes(buffer) <= SMALL_BYTES and not any(touch.writes and touch.chain is not None for touch in own)


def owned_dims(buffer: Buffer, own: list[Touch]) -> tuple[int, ...] | None:
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
    if not isinstance(chain.length, Num) or dims is None:
        return None
    rest = product(d for k, d in enumerate(buffer.shape) if k not in dims)
    share = -(-chain.length.value // chain.threads)
    fits = isinstance(rest, int) and rest * share * buffer.dtype.itemsize <= SMALL_BYTES
    return dims if fits else None


def _bytes(buffer: Buffer) -> int:
    size = product(buffer.shape)
    return size * buffer.dtype.itemsize if isinstance(size, int) else SMALL_BYTES + 1


def _moved(body: Block, old: Buffer, new: Buffer) -> Block:
    """The body with a buffer in its place; its accesses stay."""
    led = map_accesses(body, old.name, new, range(len(new.shape)))
    return _allocated(led, new)


def _allocated(block: Block, new: Buffer) -> Block:
    parts: list[Statement] = []
    for part in block.statements:
        if isinstance(part, Alloc) and part.buffer.name == new.name:
            parts.append(Alloc(new))
        else:
            parts.append(replace(part, body=_allocated(part.body, new)) if isinstance(part, For | If) else part)
    return Block(tuple(parts))
