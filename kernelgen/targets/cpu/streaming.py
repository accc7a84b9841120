"""Stores that go past the caches: which buffer of a nest is worth it.

An output larger than the last cache that the kernel does not read again costs a read of every line before it is written;
non-temporal stores save that (1.3 to 2 times faster). Smaller ones would be missed by the next kernel. Several such streams
at once collide in the write-combining buffers, so only the largest output is streamed.
"""

from __future__ import annotations

from kernelgen.dims import product
from kernelgen.nest.index import stride
from kernelgen.nest.nodes import Accumulate, Buffer, For, Nest, Space, Store
from kernelgen.nest.walk import loads_of, statements
from kernelgen.targets.cpu.access import flat_index
from kernelgen.targets.cpu.host import Host

MIN_STREAMED_BYTES = 16 << 20


def streamed_buffer(nest: Nest, host: Host) -> str | None:
    """The name of the output to stream, or None."""
    if not host.has_streaming:
        return None
    everything = tuple(statements(nest.body))
    read_again = {load.buffer.name for statement in everything for load in loads_of(statement)}
    read_again |= {statement.buffer.name for statement in everything if isinstance(statement, Accumulate)}
    large = [b for b in nest.buffers if b.name not in read_again and _static_bytes(b) >= MIN_STREAMED_BYTES]
    return max(large, key=_static_bytes).name if large else None


def stream_of(loop: For, streamed: str | None) -> Store | None:
    """The store of a vector loop that goes to the streamed buffer, unconditionally and contiguously."""
    for statement in loop.body.statements:
        if isinstance(statement, Store) and statement.buffer.name == streamed:
            return statement if stride(flat_index(statement.buffer, statement.index), loop.var) == 1 else None
    return None


def _static_bytes(buffer: Buffer) -> int:
    size = product(buffer.shape)
    if buffer.space is not Space.OUTPUT or not isinstance(size, int):
        return 0
    return size * buffer.dtype.itemsize
