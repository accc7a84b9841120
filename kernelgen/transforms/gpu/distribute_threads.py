"""Gives every thread its own iterations: loops over blocks and threads become numbers.

    grid of 1 x 1 {                            grid of N * 1 blocks of 128 threads {
      block i in 0..N:                           bind i = bx
        alloc private e[500]                     alloc private e[4]
        thread j in 0..500 over 128:      ->     unroll for turn in 0..4:
          e[j] = exp(x[i, j])                      bind f = turn * 128 + tx
        thread j in 0..500 over 128:               if f < 500: bind j = f; e[turn] = exp(x[i, j])
          y[i, j] = e[j] + 1                     ...

Without thread loops a thread takes one iteration of the block loops; with thread loops of one warp a block takes several
of them, unless they share memory. What stands outside of thread loops runs in every thread, but for stores to memory that
others see: the first thread does those. An array whose elements are dealt to the threads keeps a thread's share only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count as count_from
from math import prod

from kernelgen.machines.gpu.device import WARP, GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    BLOCK_INDEX,
    THREAD_INDICES,
    Accumulate,
    Alloc,
    Bind,
    Block,
    Buffer,
    Compare,
    For,
    Grid,
    If,
    Index,
    LoopKind,
    Nest,
    Num,
    Space,
    Statement,
    Store,
    Sync,
    Var,
)
from kernelgen.nest.walk import Place, redirect, statements
from kernelgen.transforms.gpu.assign_memory_spaces import UNROLLED, owned_dims, touches
from kernelgen.transforms.gpu.barriers import names_a_thread
from kernelgen.transforms.gpu.delinearise import FIRST, ITEM, block_loops, digits, divides, iterations, trips
from kernelgen.transforms.gpu.product_recognition import is_dealt
from kernelgen.transforms.gpu.split_column_reduction import sliced
from kernelgen.transforms.gpu.strip_mine_rows import chunked
from kernelgen.transforms.gpu.thread_ownership import Chain, chain_at, is_thread_loop
from kernelgen.transforms.gpu.transpose_in_shared import tiled
from kernelgen.transforms.gpu.vector_accesses import LANE, neighbours, widened

ALONE = 256  # threads of a block whose threads have nothing to do with each other
WARPS = 4  # of a block whose warps have nothing to do with each other
FEW = 1024  # iterations of the block loops, up to which each gets a block of its own
ENOUGH = 32 * 1024  # threads of a grid, before one takes several elements at once
FLAT, TURN = "flat", "turn"


def distribute(nest: Nest, device: GpuMachine) -> Nest:
    """The nest, cut into grids, as the program of one thread."""
    numbers = count_from()
    parts = nest.body.statements
    grids = [_dealt(s, numbers, device) if isinstance(s, Grid) and not is_dealt(s) else s for s in parts]
    return replace(nest, body=Block(tuple(grids)))


def _dealt(grid: Grid, numbers: Iterator[int], device: GpuMachine) -> Grid:
    """The first form that fits, the special ones first."""
    return tiled(grid, numbers, device) or sliced(grid, device) or chunked(grid, numbers) or _distributed(grid, numbers)


def _distributed(grid: Grid, numbers: Iterator[int]) -> Grid:
    loops, inner = block_loops(grid.body)
    total = iterations(loops)
    width = grid.threads[0]
    count = _neighbours_of(loops, inner) if width == 1 else 1
    if count > 1:
        total = _groups_of(loops, count)
        inner = _widened_items(loops, inner, count, numbers)
    groups = _groups(grid, total)
    x, y, number = Var(THREAD_INDICES[0]), Var(THREAD_INDICES[1]), Var(BLOCK_INDEX)
    if width == 1:
        item, threads = ix.add(ix.multiply(number, Num(groups)), x), (groups, 1)
        body = inner
    else:
        own = ix.add(ix.multiply(number, Num(groups)), y)
        item, threads = number if groups == 1 else own, (width, groups)
        counts = _counts(inner)
        body = _Dealer(_shares(inner, counts), counts, width, numbers).block(inner)
    parts: list[Statement] = [Bind(ITEM, item)] if loops else []
    values = zip(loops, digits(Var(ITEM), loops, count), strict=True)
    places = [Bind(loop.var, place) for loop, place in values if count == 1 or loop is not loops[-1]]
    inside = Block((*places, *body.statements))
    if loops and not divides(groups, total):
        inside = Block((If((Compare("<", Var(ITEM), total),), inside),))
    blocks = ix.floor_divide(ix.add(total, Num(groups - 1)), Num(groups))
    return replace(grid, blocks=blocks, threads=threads, body=Block((*parts, *inside.statements)))


def _neighbours_of(loops: Sequence[For], inner: Block) -> int:
    """How many iterations of the innermost block loop a thread takes at once, where threads have nothing in common."""
    if not loops or loops[-1].step != 1:
        return 1
    outer = prod(n.value if isinstance(n := trips(loop), Num) else ENOUGH for loop in loops[:-1])
    return neighbours([inner], [loops[-1].var], trips(loops[-1]), loops[-1].lower, -(-ENOUGH // max(outer, 1)))


def _groups_of(loops: Sequence[For], count: int) -> Index:
    """How many groups of ``count`` iterations of the innermost loop there are in all."""
    return ix.multiply(iterations(loops[:-1]), ix.floor_divide(trips(loops[-1]), Num(count)))


def _widened_items(loops: Sequence[For], inner: Block, count: int, numbers: Iterator[int]) -> Block:
    """The body for several iterations of the innermost loop, which then is not bound outside."""
    *_, first = digits(Var(ITEM), loops, count)
    return Block(tuple(widened(inner, loops[-1].var, first, count, numbers)))


def _groups(grid: Grid, total: Index) -> int:
    """How many iterations of the block loops a block of threads takes at once."""
    width = grid.threads[0]
    if width == 1:
        return (
            min(ALONE, -(-total.value // WARP) * WARP)
            if isinstance(total, Num) and total != Num(1)
            else (1 if total == Num(1) else ALONE)
        )
    meets = any(
        isinstance(s, Sync) or (isinstance(s, Alloc) and s.buffer.space is Space.SHARED) for s in statements(grid)
    )
    few = isinstance(total, Num) and total.value <= FEW
    in_a_warp = WARP // width
    return 1 if meets or width > WARP or total == Num(1) else in_a_warp if few else WARPS * in_a_warp


# ---------------------------------------------------------------- thread loops


@dataclass(frozen=True)
class _Share:
    """An array of which a thread keeps its share: the dims that are dealt, the array without them but for its turns.

    A thread gets ``count`` neighbours in each turn.
    """

    dims: tuple[int, ...]
    buffer: Buffer
    count: int

    def place(self, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """The index of an element in the share of its thread."""
        rest = tuple(i for k, i in enumerate(index) if k not in self.dims)
        if len(self.buffer.shape) == len(rest):
            return rest
        turn = Var(TURN) if self.buffer.shape[-1] != self.count else Num(0)
        return (*rest, ix.add(ix.multiply(turn, Num(self.count)), Var(LANE)) if self.count > 1 else turn)


Counts = dict[tuple[object, ...], int]
"""For each deal, how many neighbours a thread takes at once."""


def _counts(body: Block) -> Counts:
    """Chains that deal alike do it in everything, so that a thread always meets its own elements."""
    alike: dict[tuple[object, ...], list[Chain]] = {}
    for chain in _chains(body):
        alike.setdefault(chain.deal, []).append(chain)
    return {deal: _count(found) for deal, found in alike.items()}


def _count(alike: list[Chain]) -> int:
    inner = alike[0].loops[-1]
    length, extent = alike[0].length, alike[0].extents[-1]
    if not isinstance(length, Num) or not isinstance(extent, Num):
        return 1
    outer = length.value // max(extent.value, 1)
    least = -(-alike[0].threads // max(outer, 1))
    return neighbours(
        [chain.body for chain in alike], [chain.loops[-1].var for chain in alike], extent, inner.lower, least
    )


def _chains(block: Block) -> Iterator[Chain]:
    """The chains of thread loops, in order."""
    for part in block.statements:
        if is_thread_loop(part):
            yield chain_at(part)
        elif isinstance(part, For | If):
            yield from _chains(part.body)


def _shares(body: Block, counts: Counts) -> dict[str, _Share]:
    found: dict[str, _Share] = {}
    every = list(touches(body))
    for part in statements(body):
        if not isinstance(part, Alloc) or part.buffer.space is not Space.PRIVATE:
            continue
        buffer = part.buffer
        own = [touch for touch in every if touch.buffer.name == buffer.name]
        chain = own[0].chain if own else None
        dims = owned_dims(buffer, own) if own and all(touch.chain is not None for touch in own) else None
        if dims and chain is not None and isinstance(chain.length, Num):
            count = counts[chain.deal]
            share = -(-chain.length.value // (chain.threads * count)) * count
            rest = tuple(d for k, d in enumerate(buffer.shape) if k not in dims)
            kept = replace(buffer, shape=(*rest, *((share,) if share > 1 else ())))
            found[buffer.name] = _Share(dims, kept, count)
    return found


@dataclass(frozen=True)
class _Dealer:
    shares: dict[str, _Share]
    counts: Counts
    width: int
    numbers: Iterator[int]

    def block(self, block: Block) -> Block:
        """Code that all threads of a block run together."""
        parts: list[Statement] = []
        for part in block.statements:
            if is_thread_loop(part):
                parts += self.dealt(chain_at(part))
            elif isinstance(part, Alloc) and part.buffer.name in self.shares:
                parts.append(Alloc(self.shares[part.buffer.name].buffer))
            elif isinstance(part, Store | Accumulate) and part.buffer.space is not Space.PRIVATE:
                _append_first(parts, part)
            elif isinstance(part, For) or (isinstance(part, If) and not names_a_thread(part.conditions)):
                parts.append(replace(part, body=self.block(part.body)))
            else:
                parts.append(part)
        return Block(tuple(parts))

    def dealt(self, chain: Chain) -> list[Statement]:
        """The iterations of a chain that are this thread's, in turns."""
        count = self.counts[chain.deal]
        body = _led(chain.body, self.shares)
        values = digits(Var(FLAT), chain.loops, count)
        binds = [Bind(loop.var, place) for loop, place in zip(chain.loops, values, strict=True)]
        if count > 1:
            variable = chain.loops[-1].var
            binds, body = binds[:-1], Block(tuple(widened(body, variable, values[-1], count, self.numbers)))
        inner = Block((*binds, *body.statements))
        length, x = ix.floor_divide(chain.length, Num(count)), Var(THREAD_INDICES[0])
        if not isinstance(length, Num) or length.value > UNROLLED * self.width:
            return [For(FLAT, x, length, inner, LoopKind.SERIAL, self.width)]
        turns = -(-length.value // self.width)
        flat = Bind(FLAT, ix.add(ix.multiply(Var(TURN), Num(self.width)), x) if turns > 1 else x)
        if length.value % self.width:
            inner = Block((If((Compare("<", Var(FLAT), length),), inner),))
        inner = Block((flat, *inner.statements))
        return [For(TURN, Num(0), Num(turns), inner, LoopKind.UNROLL) if turns > 1 else inner]


def _append_first(parts: list[Statement], part: Statement) -> None:
    """Appends a statement that the first thread runs, to the guard before it where there is one."""
    if parts and isinstance(last := parts[-1], If) and last.conditions == (FIRST,):
        parts[-1] = replace(last, body=Block((*last.body.statements, part)))
    else:
        parts.append(If((FIRST,), Block((part,))))


def _led(block: Block, shares: dict[str, _Share]) -> Block:
    """The body of a chain with dealt arrays addressed by the turn."""

    def place(buffer: Buffer, index: tuple[Index, ...]) -> Place | None:
        share = shares.get(buffer.name)
        return (share.buffer, share.place(index)) if share else None

    return redirect(block, place, place)
