"""Holds what a loop accumulates into one element in a register of the thread, and combines the threads' registers once.

    s = 0                                    private p0; p0 = 0
    for i:                                   for i:
      thread j over 64:             ->         thread j over 64: p0 += x[i, j]
        s += x[i, j]                         combine p0 over 32
                                             shared part0[2]; if tx % 32 == 0: part0[tx / 32] = p0
                                             p0 = part0[0]; p0 += part0[1]
                                             s = p0

Legality: the loops touch the buffer in no other way than by accumulating into elements that stay where they are while
the loops run, and a reduction may take its terms in any order. After the combination every thread holds the result. It
goes through shared memory where more than one warp takes part. Where threads exchange no registers, all of it does, in
halves:

    shared part0[64]; part0[tx] = p0; if tx < 32: part0[tx] += part0[tx + 32]; ... ; p0 = part0[0]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from kernelgen.errors import NestError
from kernelgen.machines.gpu.device import GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import (
    THREAD_INDICES,
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Call,
    Combine,
    Compare,
    Expr,
    For,
    Grid,
    If,
    Index,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.walk import accesses, statements
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from kernelgen.transforms.gpu.thread_ownership import chain_at, is_thread_loop

FEW = 16
"""Partial results that every thread adds up by itself; more of them are added in halves."""

Target = tuple[Buffer, tuple[Index, ...], str]


def partial_results(nest: Nest, device: GpuMachine) -> Nest:
    """The nest, cut into grids, with such registers."""
    maker = _Maker(device.lanes)
    return replace(nest, body=maker.block(nest.body))


@dataclass
class _Maker:
    lanes: int
    numbers: Iterator[int] = field(default_factory=count)
    threads: int = 1

    def block(self, block: Block) -> Block:
        """Outer loops first: a register is held around all loops of a reduction."""
        parts: list[Statement] = []
        for part in block.statements:
            if isinstance(part, Grid):
                self.threads = part.threads[0]
                parts.append(replace(part, body=self.block(part.body)))
            elif isinstance(part, For):
                self.loop(part, parts)
            else:
                parts.append(replace(part, body=self.block(part.body)) if isinstance(part, If) else part)
        return Block(tuple(parts))

    def loop(self, loop: For, parts: list[Statement]) -> None:
        """Appends the loop, with what it needs before and behind it."""
        held: dict[Target, Buffer] = {}
        if loop.kind is not LoopKind.BLOCK:
            for target in _targets(loop):
                number = next(self.numbers)
                held[target] = Buffer(f"p{number}", _wide(target[0].dtype), (), Space.PRIVATE)
        for (_, _, function), private in held.items():
            parts += [Alloc(private), Store(private, (), neutral_element(function, private.dtype))]
        moved = _moved(loop, held)
        if is_thread_loop(moved):
            _require_apart(moved)
        body = self.block(moved.body)
        parts.append(replace(moved, body=body))
        for (buffer, index, function), private in held.items():
            if _is_shared_by_threads(loop, (buffer, index, function)):
                parts += self.combined(private, function)
            _finish(parts, buffer, index, function, _as(Load(private, ()), buffer.dtype))

    def combined(self, private: Buffer, function: str) -> list[Statement]:
        """All threads' registers as one value, which every thread then holds."""
        lanes = min(self.threads, self.lanes)
        found: list[Statement] = [Combine(private, (), function, lanes)] if lanes > 1 else []
        groups = self.threads // lanes
        if groups == 1:
            return found
        x = Var(THREAD_INDICES[0])
        name = f"{private.name}_of_{'warps' if lanes > 1 else 'threads'}"
        part = Buffer(name, private.dtype, (groups,), Space.SHARED)
        first = Compare("==", ix.modulo(x, Num(lanes)), Num(0)) if lanes > 1 else Compare("<", x, Num(groups))
        write = Store(part, (ix.floor_divide(x, Num(lanes)),), Load(private, ()))
        found += [Alloc(part), If((first,), Block((write,)))]
        left = groups
        while left > FEW:
            left //= 2
            half = Accumulate(part, (x,), function, Load(part, (ix.add(x, Num(left)),)))
            found.append(If((Compare("<", x, Num(left)),), Block((half,))))
        reads: list[Statement] = [Store(private, (), Load(part, (Num(0),)))]
        reads += [Accumulate(private, (), function, Load(part, (Num(k),))) for k in range(1, left)]
        return [*found, *reads]


def _wide(dtype: DType) -> DType:
    """Results of half precision are held as floats: they round once."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def _as(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype == dtype else Call("cast", (value,), dtype)


def _targets(loop: For) -> list[Target]:
    """The elements that the loop accumulates into and that stay where they are; no other access of their buffer."""
    moving = _moving(loop)
    sums = [s for s in statements(loop) if isinstance(s, Accumulate)]
    allocated = {s.buffer.name for s in statements(loop) if isinstance(s, Alloc)}
    found: list[Target] = []
    for buffer in dict.fromkeys(s.buffer for s in sums):
        own = [s for s in sums if s.buffer == buffer]
        touched = sum(1 for _ in accesses(loop, buffer.name))
        stays = not any(ix.variables(i) & moving or ix.is_by_data(i) for s in own for i in s.index)
        if stays and touched == len(own) and len({s.function for s in own}) == 1 and buffer.name not in allocated:
            found += dict.fromkeys((buffer, s.index, s.function) for s in own)
    return [target for target in found if target[0].space is not Space.PRIVATE]


def _require_apart(loop: For) -> None:
    """Raises NestError when two iterations accumulate into one element of memory."""
    names = {one.var for one in chain_at(loop).loops}
    own = {part.buffer.name for part in statements(loop) if isinstance(part, Alloc)}
    for part in statements(loop):
        if isinstance(part, Accumulate) and part.buffer.space is not Space.PRIVATE and part.buffer.name not in own:
            missing = names - {name for i in part.index for name in ix.variables(i)}
            if missing:
                raise NestError(f"threads of {min(missing)} accumulate into one element of {part.buffer.name}")


def _moving(loop: For) -> set[str]:
    return {s.var for s in statements(loop) if isinstance(s, For)}


def _moved(part: For, held: dict[Target, Buffer]) -> For:
    """The loop with accumulations led to the registers."""
    return replace(part, body=_led(part.body, held)) if held else part


def _led(block: Block, held: dict[Target, Buffer]) -> Block:
    parts: list[Statement] = []
    for part in block.statements:
        if isinstance(part, For | If):
            parts.append(replace(part, body=_led(part.body, held)))
        elif isinstance(part, Accumulate) and (part.buffer, part.index, part.function) in held:
            private = held[part.buffer, part.index, part.function]
            parts.append(Accumulate(private, (), part.function, _as(part.value, private.dtype)))
        else:
            parts.append(part)
    return Block(tuple(parts))


def _is_shared_by_threads(part: Statement, target: Target, inside: bool = False) -> bool:
    """Whether the target's accumulations stand in a thread loop."""
    if isinstance(part, Accumulate):
        return inside and (part.buffer, part.index, part.function) == target
    inner = part.body.statements if isinstance(part, For | If) else ()
    return any(_is_shared_by_threads(s, target, inside or is_thread_loop(part)) for s in inner)


def _finish(parts: list[Statement], buffer: Buffer, index: tuple[Index, ...], function: str, value: Expr) -> None:
    """Appends ``buffer[index] function= value``; a store where the element has just been started."""
    start = _start_of(parts, buffer, index, function)
    if start is None:
        parts.append(Accumulate(buffer, index, function, value))
    else:
        del parts[start]
        parts.append(Store(buffer, index, value))


def _start_of(parts: Sequence[Statement], buffer: Buffer, index: tuple[Index, ...], function: str) -> int | None:
    """The position of the store of the neutral element, if nothing behind it touches the buffer."""
    neutral = neutral_element(function, buffer.dtype)
    for position in range(len(parts) - 1, -1, -1):
        part = parts[position]
        if isinstance(part, Store) and (part.buffer, part.index) == (buffer, index):
            is_start = isinstance(part.value, Literal) and part.value == neutral
            return position if is_start else None
        if any(True for _ in accesses(part, buffer.name)):
            return None
    return None
