"""Launches that have nothing to do with each other become one, whose blocks are divided between them (block fusion).

    grid a of 4 blocks { bind item = bx*256 + tx; A }           grid a of 20 blocks {
    grid b of 16 blocks { bind item = bx*256 + tx; B }    ->      if bx < 4 { bind item = bx*256 + tx; A }
                                                                  if 4 <= bx { bind part1 = bx - 4; bind item = ...; B }

A launch costs some microseconds in which small ones leave the device idle. Launches of one level are joined: a level is
what waits for the same launches before. Legality: none of them writes what another one reads or writes, and blocks of one
launch run in no order. All threads of a block are in one part, so that barriers stay where they are; a part of fewer
threads than its launch has leaves the rest idle, and may have no meeting of its threads. Source: AKG's parallel fusion,
MindSpore's ``ParallelOpFusion`` (block fusion).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kernelgen.dims import product
from kernelgen.nest import index as ix
from kernelgen.nest.abilities import Abilities
from kernelgen.nest.nodes import (
    BLOCK_INDEX,
    THREAD_INDICES,
    Accumulate,
    Alloc,
    AsyncCopy,
    Bind,
    Block,
    Buffer,
    Combine,
    Compare,
    Copy,
    For,
    Grid,
    If,
    Index,
    Let,
    LoadFragments,
    MultiplyFragments,
    Nest,
    Num,
    Space,
    Statement,
    Store,
    Sync,
    Var,
)
from kernelgen.nest.walk import loads_of, map_blocks, statements

MOST_SHARED = 32 * 1024
"""Bytes of shared memory that the parts of a launch take together: each of its blocks has the memory of all of them."""

FEW = 4
"""Blocks of a part for each multiprocessor, which may leave threads idle: they are done at once."""

MEETINGS = (Sync, Combine, LoadFragments, MultiplyFragments)
PART = "part"


def side_by_side(nest: Nest, device: Abilities) -> Nest:
    """The nest, cut into distributed grids, with fewer of them."""
    waves: dict[int, list[list[_Part]]] = {}
    levels: list[tuple[_Part, int]] = []
    for grid in nest.body.statements:
        if not isinstance(grid, Grid):
            return nest
        part = _Part.of(grid, device)
        level = max((before + 1 for earlier, before in levels if part.waits_for(earlier)), default=0)
        levels.append((part, level))
        launches = waves.setdefault(level, [])
        place = next((launch for launch in launches if _fit([*launch, part])), None)
        if place is None:
            launches.append([part])
        else:
            place.append(part)
    joined = [_joined([part.grid for part in launch]) for _, wave in sorted(waves.items()) for launch in wave]
    return replace(nest, body=Block(tuple(joined)))


@dataclass(frozen=True)
class _Part:
    """A grid and what decides with which ones it may be joined; buffers are those of the device's memory, by name."""

    grid: Grid
    read: frozenset[str]
    written: frozenset[str]
    shared: int  # bytes
    few: int
    """Blocks that the device has room for at once."""
    meets: bool
    plain: bool
    """Whether bindings alone name the block, isl can count the blocks, and the device bears the meetings."""

    @staticmethod
    def of(grid: Grid, device: Abilities) -> _Part:
        inside = list(statements(grid.body))
        read = {load.buffer for part in inside for load in loads_of(part)}
        read |= {part.source for part in inside if isinstance(part, Copy | AsyncCopy)}
        written = {part.buffer for part in inside if isinstance(part, Store | Accumulate)}
        written |= {part.target for part in inside if isinstance(part, Copy | AsyncCopy)}
        meets = any(isinstance(part, MEETINGS) for part in inside)
        named = any(BLOCK_INDEX in ix.variables(i) for part in inside for i in _indices(part))
        return _Part(
            grid,
            _seen(read),
            _seen(written),
            sum(_shared_bytes(part) for part in inside),
            FEW * device.processors,
            meets,
            not grid.when and not named and ix.is_affine(grid.blocks) and (device.divided_meetings or not meets),
        )

    def waits_for(self, earlier: _Part) -> bool:
        """Whether one of them writes what the other one touches."""
        return bool(earlier.written & (self.read | self.written) or self.written & earlier.read)

    def has_room(self, threads: tuple[int, int]) -> bool:
        """Whether it runs in blocks of so many threads."""
        own, blocks = self.grid.threads, self.grid.blocks
        small = isinstance(blocks, Num) and blocks.value <= self.few
        return own == threads or (own[1] == threads[1] == 1 and small and not self.meets)


def _seen(buffers: Iterable[Buffer]) -> frozenset[str]:
    return frozenset(buffer.name for buffer in buffers if buffer.space not in (Space.PRIVATE, Space.SHARED))


def _shared_bytes(part: Statement) -> int:
    if not isinstance(part, Alloc) or part.buffer.space is not Space.SHARED:
        return 0
    size = product(part.buffer.shape)
    return size * part.buffer.dtype.itemsize if isinstance(size, int) else MOST_SHARED + 1


def _fit(parts: Sequence[_Part]) -> bool:
    """Whether such grids may be one launch."""
    widest = max(part.grid.threads for part in parts)
    shared = sum(part.shared for part in parts)
    return shared <= MOST_SHARED and all(part.plain and part.has_room(widest) for part in parts)


def _indices(part: Statement) -> Iterator[Index]:
    """The indices that a statement itself holds, but for those of bindings."""
    match part:
        case For(_, lower, upper):
            yield from (lower, upper)
        case If(conditions) | AsyncCopy(conditions=conditions):
            yield from (side for each in conditions for side in (each.left, each.right))
        case _:
            pass
    match part:
        case Store(_, index) | Accumulate(_, index) | Combine(_, index):
            yield from index
        case Copy(_, to, _, start) | AsyncCopy(_, to, _, start) | LoadFragments(_, to, _, start):
            yield from (*to, *start)
        case MultiplyFragments(_, to, _, left, _, right):
            yield from (*to, *left, *right)
        case _:
            pass
    if isinstance(part, Let | Store | Accumulate):
        yield from map(Var, sorted(ix.variables_in(part.value)))


def _joined(parts: Sequence[Grid]) -> Grid:
    """One launch for all parts, each with blocks of its own."""
    if len(parts) == 1:
        return parts[0]
    threads = max(grid.threads for grid in parts)
    start: Index = Num(0)
    found: list[Statement] = []
    for number, grid in enumerate(parts):
        end = ix.add(start, grid.blocks)
        conditions = [Compare("<=", start, Var(BLOCK_INDEX))] if number else []
        conditions += [Compare("<", Var(BLOCK_INDEX), end)] if number < len(parts) - 1 else []
        if grid.threads != threads:
            conditions.append(Compare("<", Var(THREAD_INDICES[0]), Num(grid.threads[0])))
        body = grid.body
        if number:
            name = f"{PART}{number}"
            body = _with_block(body, Var(name))
            own = ix.subtract(Var(BLOCK_INDEX), start)
            known = isinstance(start, Num)  # else the printer does not see that the number is never below 0
            body = Block((Bind(name, own if known else ix.maximum(own, Num(0))), *body.statements))
        found.append(If(tuple(conditions), body))
        start = end
    return replace(parts[0], blocks=start, threads=threads, body=Block(tuple(found)))


def _with_block(body: Block, number: Index) -> Block:
    """The body with another number of its block, which bindings alone name."""

    def bound(block: Block) -> Block:
        parts = block.statements
        return Block(
            tuple(
                replace(p, index=ix.substitute(p.index, {BLOCK_INDEX: number})) if isinstance(p, Bind) else p
                for p in parts
            )
        )

    return map_blocks(body, bound)
