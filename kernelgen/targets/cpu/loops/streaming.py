"""Stores that go past the caches: which buffer of a nest is worth it.

A large output that the kernel does not read again costs a read of every line before it is written; non-temporal stores
save that (1.3 to 2 times faster). They pay when all that the kernel moves does not fit the last cache anyway; what does
would be missed there by the next kernel. Several such streams at once collide in the write-combining buffers, so only the
largest output is streamed. A kernel for all sizes asks once, when it starts, whether its sizes are worth it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.nest.congruence import distance
from kernelgen.nest.index import from_dim, stride
from kernelgen.nest.nodes import Accumulate, Block, Buffer, Compare, For, Nest, Num, Space, Store
from kernelgen.nest.walk import loads_of, statements
from kernelgen.targets.cpu.statements.access import flat_index
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dims import Dim, Sym, product

MIN_STREAMED_BYTES = 8 << 20
MIN_MOVED_BYTES = 32 << 20
"""The size of a usual last cache."""


IS_LARGE = "is.large"
"""The variable of a kernel for all sizes that is 1 where it streams, else 0; no symbol can have this name."""


def streamed_buffer(nest: Nest, host: Host) -> str | None:
    """The name of the output to stream, or None."""
    if not _may_reach(_bytes_moved(nest), MIN_MOVED_BYTES):
        return None
    large = [b for b in _streamable(nest, host) if _may_reach(_bytes(b), MIN_STREAMED_BYTES)]
    return max(large, key=_growth).name if large else None


def may_stream(nest: Nest, name: str, host: Host) -> bool:
    """Whether the buffer called ``name`` of a ``nest`` can be stored past the caches of the processor ``host``."""
    return any(buffer.name == name for buffer in _streamable(nest, host))


def _streamable(nest: Nest, host: Host) -> list[Buffer]:
    """The outputs that the kernel does not read again; none where the processor has no such stores."""
    if not host.has_streaming:
        return []
    everything = tuple(statements(nest.body))
    read_again = {load.buffer.name for statement in everything for load in loads_of(statement)}
    read_again |= {statement.buffer.name for statement in everything if isinstance(statement, Accumulate)}
    return [b for b in nest.buffers if b.space is Space.OUTPUT and b.name not in read_again]


def streaming_conditions(nest: Nest, streamed: str) -> tuple[Compare, ...]:
    """What must hold of the sizes so that streaming pays; nothing when it always does."""
    (buffer,) = (b for b in nest.buffers if b.name == streamed)
    asked = ((MIN_STREAMED_BYTES, _bytes(buffer)), (MIN_MOVED_BYTES, _bytes_moved(nest)))
    return tuple(Compare("<=", Num(least), from_dim(found)) for least, found in asked if isinstance(found, Sym))


@dataclass(frozen=True)
class Stream:
    """The contiguous stores of a vector loop to the streamed buffer.

    Where the vectors of ``first`` are aligned, so are all but those of ``others``, of which that is not known.
    """

    first: Store
    others: tuple[Store, ...] = ()


def stream_of(loop: For, streamed: str | None, lanes: int) -> Stream | None:
    """The stores that go past the caches; None where some can never be aligned together, or are not contiguous."""
    stores = [store for store in _unconditional(loop.body) if store.buffer.name == streamed]
    places = [flat_index(store.buffer, store.index) for store in stores]
    if not stores or any(stride(place, loop.var) != 1 for place in places):
        return None
    apart = [distance(place, places[0], lanes) for place in places]
    if any(apart):
        return None
    return Stream(stores[0], tuple(store for store, found in zip(stores, apart, strict=True) if found is None))


def _unconditional(body: Block) -> Iterator[Store]:
    """The stores that run for every lane: those of branches are masked, and go through the caches."""
    for statement in body.statements:
        if isinstance(statement, Store):
            yield statement
        elif isinstance(statement, Block):
            yield from _unconditional(statement)


def _bytes(buffer: Buffer) -> Dim:
    return product(buffer.shape) * buffer.dtype.itemsize


def _bytes_moved(nest: Nest) -> Dim:
    return sum((_bytes(buffer) for buffer in nest.buffers), start=0)


def _may_reach(found: Dim, least: int) -> bool:
    return isinstance(found, Sym) or found >= least


def _growth(buffer: Buffer) -> tuple[int, int]:
    """Orders buffers by size: first by how many symbols are multiplied, then by the factor."""
    found = _bytes(buffer)
    return max((len(m), factor) for m, factor in found.terms) if isinstance(found, Sym) else (0, found)
