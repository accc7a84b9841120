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
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import substituted
from kernelgen.nest.walk import map_blocks

X, Y = n.THREAD_INDICES


def seated(grid: n.Grid, threads: int, meets: bool) -> n.Block:
    """The body of the grid for blocks of ``threads`` in a row; ``meets`` is whether its threads do."""
    own = grid.threads[0] * grid.threads[1]
    if own == threads:
        return _in_a_row(grid, False)
    if not meets:
        return n.Block((n.If((_is_own(own),), _in_a_row(grid, False)),))
    body = _in_a_row(grid, True)
    return map_blocks(body, lambda block: n.Block(tuple(_for_own(part, own) for part in block.statements)))


def _is_own(own: int) -> n.Compare:
    return n.Compare("<", n.Var(X), n.Num(own))


def _in_a_row(grid: n.Grid, with_others: bool) -> n.Block:
    """The body with places in a row in place of both indices of a thread, where there may be others beyond its own."""
    width, height = grid.threads
    column, row = ix.modulo(n.Var(X), n.Num(width)), ix.floor_divide(n.Var(X), n.Num(width))
    if height == 1:
        return substituted(grid.body, {X: column, Y: n.Num(0)}) if with_others else grid.body
    return substituted(grid.body, {X: column, Y: ix.modulo(row, n.Num(height)) if with_others else row})


def _for_own(part: n.Statement, own: int) -> n.Statement:
    """What others see is stored by threads of the grid alone."""
    if isinstance(part, n.Store | n.Accumulate):
        seen = part.buffer.space is not n.Space.PRIVATE
    else:
        seen = isinstance(part, n.Copy | n.AsyncCopy) and part.target.space is not n.Space.PRIVATE
    return n.If((_is_own(own),), n.Block((part,))) if seen else part
