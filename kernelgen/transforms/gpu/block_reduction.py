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
from kernelgen.nest import nodes as n
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.walk import accesses, statements
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from kernelgen.transforms.gpu.thread_ownership import chain_at, is_thread_loop

FEW = 16
"""Partial results that every thread adds up by itself; more of them are added in halves."""

Target = tuple[n.Buffer, tuple[n.Index, ...], str]


def partial_results(nest: n.Nest, device: GpuMachine) -> n.Nest:
    """The nest, cut into grids, with such registers."""
    maker = _Maker(device.lanes)
    return replace(nest, body=maker.block(nest.body))


@dataclass
class _Maker:
    lanes: int
    numbers: Iterator[int] = field(default_factory=count)
    threads: int = 1

    def block(self, block: n.Block) -> n.Block:
        """Outer loops first: a register is held around all loops of a reduction."""
        parts: list[n.Statement] = []
        for part in block.statements:
            if isinstance(part, n.Grid):
                self.threads = part.threads[0]
                parts.append(replace(part, body=self.block(part.body)))
            elif isinstance(part, n.For):
                self.loop(part, parts)
            else:
                parts.append(replace(part, body=self.block(part.body)) if isinstance(part, n.If) else part)
        return n.Block(tuple(parts))

    def loop(self, loop: n.For, parts: list[n.Statement]) -> None:
        """Appends the loop, with what it needs before and behind it."""
        held: dict[Target, n.Buffer] = {}
        if loop.kind is not n.LoopKind.BLOCK:
            for target in _targets(loop):
                number = next(self.numbers)
                held[target] = n.Buffer(f"p{number}", _wide(target[0].dtype), (), n.Space.PRIVATE)
        for (_, _, function), private in held.items():
            parts += [n.Alloc(private), n.Store(private, (), neutral_element(function, private.dtype))]
        moved = _moved(loop, held)
        if is_thread_loop(moved):
            _require_apart(moved)
        body = self.block(moved.body)
        parts.append(replace(moved, body=body))
        for (buffer, index, function), private in held.items():
            if _is_shared_by_threads(loop, (buffer, index, function)):
                parts += self.combined(private, function)
            _finish(parts, buffer, index, function, _as(n.Load(private, ()), buffer.dtype))

    def combined(self, private: n.Buffer, function: str) -> list[n.Statement]:
        """All threads' registers as one value, which every thread then holds."""
        lanes = min(self.threads, self.lanes)
        found: list[n.Statement] = [n.Combine(private, (), function, lanes)] if lanes > 1 else []
        groups = self.threads // lanes
        if groups == 1:
            return found
        x = n.Var(n.THREAD_INDICES[0])
        name = f"{private.name}_of_{'warps' if lanes > 1 else 'threads'}"
        part = n.Buffer(name, private.dtype, (groups,), n.Space.SHARED)
        first = n.Compare("==", ix.modulo(x, n.Num(lanes)), n.Num(0)) if lanes > 1 else n.Compare("<", x, n.Num(groups))
        write = n.Store(part, (ix.floor_divide(x, n.Num(lanes)),), n.Load(private, ()))
        found += [n.Alloc(part), n.If((first,), n.Block((write,)))]
        left = groups
        while left > FEW:
            left //= 2
            half = n.Accumulate(part, (x,), function, n.Load(part, (ix.add(x, n.Num(left)),)))
            found.append(n.If((n.Compare("<", x, n.Num(left)),), n.Block((half,))))
        reads: list[n.Statement] = [n.Store(private, (), n.Load(part, (n.Num(0),)))]
        reads += [n.Accumulate(private, (), function, n.Load(part, (n.Num(k),))) for k in range(1, left)]
        return [*found, *reads]


def _wide(dtype: DType) -> DType:
    """Results of half precision are held as floats: they round once."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def _as(value: n.Expr, dtype: DType) -> n.Expr:
    return value if value.dtype == dtype else n.Call("cast", (value,), dtype)


def _targets(loop: n.For) -> list[Target]:
    """The elements that the loop accumulates into and that stay where they are; no other access of their buffer."""
    moving = _moving(loop)
    sums = [s for s in statements(loop) if isinstance(s, n.Accumulate)]
    allocated = {s.buffer.name for s in statements(loop) if isinstance(s, n.Alloc)}
    found: list[Target] = []
    for buffer in dict.fromkeys(s.buffer for s in sums):
        own = [s for s in sums if s.buffer == buffer]
        touched = sum(1 for _ in accesses(loop, buffer.name))
        stays = not any(ix.variables(i) & moving or ix.is_by_data(i) for s in own for i in s.index)
        if stays and touched == len(own) and len({s.function for s in own}) == 1 and buffer.name not in allocated:
            found += dict.fromkeys((buffer, s.index, s.function) for s in own)
    return [target for target in found if target[0].space is not n.Space.PRIVATE]


def _require_apart(loop: n.For) -> None:
    """Raises NestError when two iterations accumulate into one element of memory."""
    names = {one.var for one in chain_at(loop).loops}
    own = {part.buffer.name for part in statements(loop) if isinstance(part, n.Alloc)}
    for part in statements(loop):
        if isinstance(part, n.Accumulate) and part.buffer.space is not n.Space.PRIVATE and part.buffer.name not in own:
            missing = names - {name for i in part.index for name in ix.variables(i)}
            if missing:
                raise NestError(f"threads of {min(missing)} accumulate into one element of {part.buffer.name}")


def _moving(loop: n.For) -> set[str]:
    return {s.var for s in statements(loop) if isinstance(s, n.For)}


def _moved(part: n.For, held: dict[Target, n.Buffer]) -> n.For:
    """The loop with accumulations led to the registers."""
    return replace(part, body=_led(part.body, held)) if held else part


def _led(block: n.Block, held: dict[Target, n.Buffer]) -> n.Block:
    parts: list[n.Statement] = []
    for part in block.statements:
        if isinstance(part, n.For | n.If):
            parts.append(replace(part, body=_led(part.body, held)))
        elif isinstance(part, n.Accumulate) and (part.buffer, part.index, part.function) in held:
            private = held[part.buffer, part.index, part.function]
            parts.append(n.Accumulate(private, (), part.function, _as(part.value, private.dtype)))
        else:
            parts.append(part)
    return n.Block(tuple(parts))


def _is_shared_by_threads(part: n.Statement, target: Target, inside: bool = False) -> bool:
    """Whether the target's accumulations stand in a thread loop."""
    if isinstance(part, n.Accumulate):
        return inside and (part.buffer, part.index, part.function) == target
    inner = part.body.statements if isinstance(part, n.For | n.If) else ()
    return any(_is_shared_by_threads(s, target, inside or is_thread_loop(part)) for s in inner)


def _finish(
    parts: list[n.Statement], buffer: n.Buffer, index: tuple[n.Index, ...], function: str, value: n.Expr
) -> None:
    """Appends ``buffer[index] function= value``; a store where the element has just been started."""
    start = _start_of(parts, buffer, index, function)
    if start is None:
        parts.append(n.Accumulate(buffer, index, function, value))
    else:
        del parts[start]
        parts.append(n.Store(buffer, index, value))


def _start_of(parts: Sequence[n.Statement], buffer: n.Buffer, index: tuple[n.Index, ...], function: str) -> int | None:
    """The position of the store of the neutral element, if nothing behind it touches the buffer."""
    neutral = neutral_element(function, buffer.dtype)
    for position in range(len(parts) - 1, -1, -1):
        part = parts[position]
        if isinstance(part, n.Store) and (part.buffer, part.index) == (buffer, index):
            is_start = isinstance(part.value, n.Literal) and part.value == neutral
            return position if is_start else None
        if any(True for _ in accesses(part, buffer.name)):
            return None
    return None
