"""Stores that go past the caches: which buffer of a nest is worth it.

A large output that the kernel does not read again costs a read of every line before it is written; non-temporal stores
save that (1.3 to 2 times faster). They pay when all that the kernel moves does not fit the last cache anyway; what does
would be missed there by the next kernel. Several such streams at once collide in the write-combining buffers, so only the
largest output is streamed.
"""

from __future__ import annotations

from kernelgen.dims import product
from kernelgen.nest.index import stride
from kernelgen.nest.nodes import Accumulate, Buffer, For, Nest, Space, Store
from kernelgen.nest.walk import loads_of, statements
from kernelgen.targets.cpu.access import flat_index
from kernelgen.targets.cpu.host import Host

MIN_STREAMED_BYTES = 8 << 20
MIN_MOVED_BYTES = 32 << 20
"""The size of a usual last cache."""


def streamed_buffer(nest: Nest, host: Host) -> str | None:
    """The name of the output to stream, or None."""
    if not host.has_streaming or sum(map(_static_bytes, nest.buffers)) < MIN_MOVED_BYTES:
        return None
    everything = tuple(statements(nest.body))
    read_again = {load.buffer.name for statement in everything for load in loads_of(statement)}
    read_again |= {statement.buffer.name for statement in everything if isinstance(statement, Accumulate)}
    outputs = [b for b in nest.buffers if b.space is Space.OUTPUT and b.name not in read_again]
    large = [b for b in outputs if _static_bytes(b) >= MIN_STREAMED_BYTES]
    return max(large, key=_static_bytes).name if large else None


def stream_of(loop: For, streamed: str | None) -> Store | None:
    """The store of a vector loop that goes to the streamed buffer, unconditionally and contiguously."""
    for statement in loop.body.statements:
        if isinstance(statement, Store) and statement.buffer.name == streamed:
            return statement if stride(flat_index(statement.buffer, statement.index), loop.var) == 1 else None
    return None


def _static_bytes(buffer: Buffer) -> int:
    size = product(buffer.shape)
    return size * buffer.dtype.itemsize if isinstance(size, int) else 0
