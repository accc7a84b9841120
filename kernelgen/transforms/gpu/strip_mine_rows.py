"""Rows of unknown length in chunks, so that an index is taken apart once for several elements, which may move at once.

    block i in 0..M                       block of 8 rows x 128 columns, 32 x 8 threads
      block j in 0..N                       row = row_start + ty
        y[i, j] = x[i, j] + b[j]     ->     if row < M:  i = row
                                              if N % 4 == 0 and first < N:  4 neighbours from first = j_start + tx * 4 on
                                              if 1 <= N % 4:  j = j_start + tx, j_start + 32 + tx, ... each where j < N

A single loop over arrays of one dim goes in chunks of 1024 elements: whole ones move four at once, the last one goes
element by element. Where it runs along one row of several, N has to be a multiple here too.
Legality: iterations of block loops are independent. Buffers start at multiples of 256 bytes, so that the rows of one whose
innermost extent N is a multiple of 4 are aligned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelgen.machines.gpu.device import WARP
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    BLOCK_INDEX,
    THREAD_INDICES,
    Bind,
    Block,
    Compare,
    For,
    Grid,
    If,
    Index,
    LoopKind,
    Num,
    Statement,
    Var,
)
from kernelgen.nest.substitute import renamed
from kernelgen.transforms.gpu.delinearise import ITEM, block_loops, digits, iterations
from kernelgen.transforms.gpu.vector_accesses import moves_rows, together, widened

ROWS = 8
ALONE = 256
"""Threads of a block where there is one loop alone."""

ROW, PART = "row", "part"


def chunked(grid: Grid, numbers: Iterator[int]) -> Grid | None:
    """The grid by chunks; None where the innermost block loop has a known length or nothing is contiguous along it."""
    loops, inner = block_loops(grid.body)
    if grid.threads[0] > 1 or not loops or loops[-1].lower != Num(0) or any(loop.step > 1 for loop in loops):
        return None
    if isinstance(loops[-1].upper, Num):
        return None
    count = together(inner, loops[-1].var, loops[-1].upper)
    return _Chunker(tuple(loops), inner, count, numbers).grid(grid) if count > 1 else None


@dataclass(frozen=True)
class _Chunker:
    loops: tuple[For, ...]
    inner: Block
    count: int
    numbers: Iterator[int]

    @property
    def last(self) -> For:
        """The loop in chunks."""
        return self.loops[-1]

    @property
    def threads(self) -> tuple[int, int]:
        """Of a block: along a row, and rows."""
        return (WARP, ROWS) if len(self.loops) > 1 else (ALONE, 1)

    @property
    def chunk(self) -> int:
        """Elements of a row that a block takes."""
        return self.threads[0] * self.count

    def grid(self, grid: Grid) -> Grid:
        """A block for some rows of a chunk."""
        start = f"{self.last.var}_start"
        by_chunk = replace(self.last, var=start, step=self.chunk)
        *outer, _ = self.loops
        rows = iterations(outer)
        by_rows = For(f"{ROW}_start", Num(0), rows, Block(), step=ROWS)
        counted = [by_rows, by_chunk] if outer else [by_chunk]
        total = iterations(counted)
        binds = [Bind(loop.var, value) for loop, value in zip(counted, digits(Var(ITEM), counted), strict=True)]
        body = Block((Bind(ITEM, Var(BLOCK_INDEX)), *binds, *self.rows(outer, rows, Var(start))))
        return replace(grid, blocks=total, threads=self.threads, body=body)

    def rows(self, outer: list[For], rows: Index, start: Index) -> list[Statement]:
        """The elements of this thread's row."""
        if not outer:
            return self.elements(start)
        binds = [Bind(loop.var, value) for loop, value in zip(outer, digits(Var(ROW), outer), strict=True)]
        guarded = If((Compare("<", Var(ROW), rows),), Block((*binds, *self.elements(start))))
        return [Bind(ROW, ix.add(Var(f"{ROW}_start"), Var(THREAD_INDICES[1]))), guarded]

    def elements(self, start: Index) -> list[Statement]:
        """Neighbours at once where they are aligned, else one after the other."""
        x, extent = Var(THREAD_INDICES[0]), self.last.upper
        first = ix.add(start, ix.multiply(x, Num(self.count)))
        at_once = Block(tuple(widened(self.inner, self.last.var, first, self.count, self.numbers, extent)))
        place = ix.add(start, ix.add(ix.multiply(Var(PART), Num(self.threads[0])), x))
        guarded = If((Compare("<", Var(self.last.var), extent),), renamed(self.inner, "_alone"))
        alone = For(PART, Num(0), Num(self.count), Block((Bind(self.last.var, place), guarded)), LoopKind.UNROLL)
        if len(self.loops) == 1 and not moves_rows(self.inner, self.last.var, extent):
            end = ix.add(start, Num(self.chunk))
            aligned = (Compare("<=", end, extent),)
            other = Compare("<", extent, end)
        else:
            rest = ix.modulo(extent, Num(self.count))
            aligned = (Compare("==", rest, Num(0)), Compare("<", first, extent))
            other = Compare("<=", Num(1), rest)
        return [If(aligned, at_once), If((other,), Block((alone,)))]
