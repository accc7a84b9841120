"""The body of a grid for blocks of another shape: more threads, and all in one row.

    grid of 32 x 4 threads {                  in a row of 512:
      s = u[tx, ty]                             s = u[tx mod 32, tx / 32 mod 4]
      a[ty] = s                       ->        if tx < 128: a[tx / 32 mod 4] = s
      sync                                      sync
      v[tx] = a[0] + a[1]                       if tx < 128: v[tx mod 32] = a[0] + a[1]

Threads keep their place in their warp, as ``tx`` counts fastest. Those beyond the grid's own do what one of its own does, so
that all of the block come to every barrier and whole warps to what warps do, but for what others see: they store nothing.
Where threads do not meet they do nothing at all.
"""

from __future__ import annotations

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    THREAD_INDICES,
    Accumulate,
    AsyncCopy,
    Block,
    Compare,
    Copy,
    Grid,
    If,
    Num,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.substitute import substituted
from kernelgen.nest.walk import map_blocks

X, Y = THREAD_INDICES


def seated(grid: Grid, threads: int, meets: bool) -> Block:
    """The body of the grid for blocks of ``threads`` in a row; ``meets`` is whether its threads do."""
    own = grid.threads[0] * grid.threads[1]
    if own == threads:
        return _in_a_row(grid, False)
    if not meets:
        return Block((If((_is_own(own),), _in_a_row(grid, False)),))
    body = _in_a_row(grid, True)
    return map_blocks(body, lambda block: Block(tuple(_for_own(part, own) for part in block.statements)))


def _is_own(own: int) -> Compare:
    return Compare("<", Var(X), Num(own))


def _in_a_row(grid: Grid, with_others: bool) -> Block:
    """The body with places in a row in place of both indices of a thread, where there may be others beyond its own."""
    width, height = grid.threads
    column, row = ix.modulo(Var(X), Num(width)), ix.floor_divide(Var(X), Num(width))
    if height == 1:
        return substituted(grid.body, {X: column, Y: Num(0)}) if with_others else grid.body
    return substituted(grid.body, {X: column, Y: ix.modulo(row, Num(height)) if with_others else row})


def _for_own(part: Statement, own: int) -> Statement:
    """What others see is stored by threads of the grid alone."""
    if isinstance(part, Store | Accumulate):
        seen = part.buffer.space is not Space.PRIVATE
    else:
        seen = isinstance(part, Copy | AsyncCopy) and part.target.space is not Space.PRIVATE
    return If((_is_own(own),), Block((part,))) if seen else part
