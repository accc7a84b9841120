"""Memory for locals: the stack for small ones, the heap for the rest, which is taken once for all iterations of a loop."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from kernelgen.machines.cpu import CPU
from kernelgen.nest.index import from_dim
from kernelgen.nest.nodes import Alloc, Block, Buffer
from kernelgen.nest.walk import statements
from kernelgen.targets.cpu.text.formats import memory_kind
from kernelgen.targets.cpu.text.indices import index_value
from kernelgen.targets.cpu.text.scope import Frame, Memory
from kernelgen.targets.cpu.text.values import vector_type
from kernelgen.tensor.dims import product

STACK_BYTES = 128 * 1024
"""The largest local on the stack; threads have stacks of 2 MB and more."""


def local(frame: Frame, buffer: Buffer) -> Memory:
    """Memory on the stack for a small static local, else from the heap; one element per lane inside of a vector loop."""
    if buffer.name in frame.memory:  # allocated once, before the loop
        return frame.memory[buffer.name]
    kind = memory_kind(buffer.dtype, frame.host)
    if frame.lanes is not None:
        lanes = frame.lanes.count
        return Memory(buffer, frame.function.slot(vector_type(kind, lanes), buffer.name), lanes)
    if _is_large(buffer):
        return _from_heap(frame, buffer)
    return Memory(buffer, _array(frame, buffer, kind) if buffer.shape else frame.function.slot(kind, buffer.name))


def _array(frame: Frame, buffer: Buffer, kind: str) -> str:
    """An array on the stack, whose life begins here.

    LLVM 22 takes an array of which it knows nothing else, and that is written in parts and read as a whole, for one vector,
    and puts it together behind the part that lies last instead of behind the one that is written last.
    """
    function = frame.function
    slot = function.slot(f"[{product(buffer.shape)} x {kind}]", buffer.name)
    begin = function.module.declare("llvm.lifetime.start.p0", "void", "i64, ptr")
    function.perform(f"call void {begin}(i64 -1, ptr {slot})")
    return slot


def _is_large(buffer: Buffer) -> bool:
    count = product(buffer.shape)
    return not isinstance(count, int) or count * buffer.dtype.itemsize > STACK_BYTES


def _from_heap(frame: Frame, buffer: Buffer) -> Memory:
    """Memory from the heap, at the start of a cache line: vectors that lie across two of them take twice as long."""
    function = frame.function
    size = index_value(frame, from_dim(product(buffer.shape) * buffer.dtype.itemsize + CPU.line_bytes))
    block = function.assign(f"call ptr {function.module.declare('malloc', 'ptr', 'i64')}({size.typed})", buffer.name)
    end = function.assign(f"getelementptr i8, ptr {block}, i64 {CPU.line_bytes - 1}")
    mask = function.module.declare("llvm.ptrmask.p0.i64", "ptr", "ptr, i64")
    pointer = function.assign(f"call ptr {mask}(ptr {end}, i64 {-CPU.line_bytes})", buffer.name)
    return Memory(buffer, pointer, block=block)


@contextmanager
def heap_locals(frame: Frame, body: Block) -> Generator[Frame]:
    """A frame in which the large locals of a loop's body have memory, which is allocated once for all iterations.

    Their sizes are over the symbols of the nest, so that they are known before the loop.
    """
    large = [s.buffer for s in statements(body) if isinstance(s, Alloc) and _is_large(s.buffer)]
    taken = [_from_heap(frame, buffer) for buffer in dict.fromkeys(large)]
    inside = frame
    for memory in taken:
        inside = inside.with_memory(replace(memory, block=None))
    yield inside
    for memory in taken:
        _free(frame, memory)


def release(frame: Frame, block: Block) -> None:
    """Frees the heap memory of the locals that a block made."""
    for statement in block.statements:
        if isinstance(statement, Alloc):
            _free(frame, frame.memory[statement.buffer.name])


def _free(frame: Frame, memory: Memory) -> None:
    if memory.block is not None:
        free = frame.function.module.declare("free", "void", "ptr")
        frame.function.perform(f"call void {free}(ptr {memory.block})")
