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
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import renamed
from kernelgen.transforms.gpu.delinearise import ITEM, block_loops, digits, iterations
from kernelgen.transforms.gpu.vector_accesses import moves_rows, together, widened

ROWS = 8
"""Of a block's threads, a warp each, where there are several loops."""
ALONE = 256
"""Threads of a block where there is one loop alone."""

ROW, PART = "row", "part"


def chunked(grid: n.Grid, numbers: Iterator[int]) -> n.Grid | None:
    """The grid by chunks; None where the innermost block loop has a known length or nothing is contiguous along it."""
    loops, inner = block_loops(grid.body)
    if grid.threads[0] > 1 or not loops or loops[-1].lower != n.Num(0) or any(loop.step > 1 for loop in loops):
        return None
    if isinstance(loops[-1].upper, n.Num):
        return None
    count = together(inner, loops[-1].var, loops[-1].upper)
    return _Chunker(tuple(loops), inner, count, numbers).grid(grid) if count > 1 else None


@dataclass(frozen=True)
class _Chunker:
    loops: tuple[n.For, ...]
    inner: n.Block
    count: int
    numbers: Iterator[int]

    @property
    def last(self) -> n.For:
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

    def grid(self, grid: n.Grid) -> n.Grid:
        """A block for some rows of a chunk."""
        start = f"{self.last.var}_start"
        by_chunk = replace(self.last, var=start, step=self.chunk)
        *outer, _ = self.loops
        rows = iterations(outer)
        by_rows = n.For(f"{ROW}_start", n.Num(0), rows, n.Block(), step=ROWS)
        counted = [by_rows, by_chunk] if outer else [by_chunk]
        total = iterations(counted)
        binds = [n.Bind(loop.var, value) for loop, value in zip(counted, digits(n.Var(ITEM), counted), strict=True)]
        body = n.Block((n.Bind(ITEM, n.Var(n.BLOCK_INDEX)), *binds, *self.rows(outer, rows, n.Var(start))))
        return replace(grid, blocks=total, threads=self.threads, body=body)

    def rows(self, outer: list[n.For], rows: n.Index, start: n.Index) -> list[n.Statement]:
        """The elements of this thread's row."""
        if not outer:
            return self.elements(start)
        binds = [n.Bind(loop.var, value) for loop, value in zip(outer, digits(n.Var(ROW), outer), strict=True)]
        guarded = n.If((n.Compare("<", n.Var(ROW), rows),), n.Block((*binds, *self.elements(start))))
        return [n.Bind(ROW, ix.add(n.Var(f"{ROW}_start"), n.Var(n.THREAD_INDICES[1]))), guarded]

    def elements(self, start: n.Index) -> list[n.Statement]:
        """Neighbours at once where they are aligned, else one after the other."""
        x, extent = n.Var(n.THREAD_INDICES[0]), self.last.upper
        first = ix.add(start, ix.multiply(x, n.Num(self.count)))
        at_once = n.Block(tuple(widened(self.inner, self.last.var, first, self.count, self.numbers, extent)))
        place = ix.add(start, ix.add(ix.multiply(n.Var(PART), n.Num(self.threads[0])), x))
        guarded = n.If((n.Compare("<", n.Var(self.last.var), extent),), renamed(self.inner, "_alone"))
        alone = n.For(
            PART, n.Num(0), n.Num(self.count), n.Block((n.Bind(self.last.var, place), guarded)), n.LoopKind.UNROLL
        )
        if len(self.loops) == 1 and not moves_rows(self.inner, self.last.var, extent):
            end = ix.add(start, n.Num(self.chunk))
            aligned = (n.Compare("<=", end, extent),)
            other = n.Compare("<", extent, end)
        else:
            rest = ix.modulo(extent, n.Num(self.count))
            aligned = (n.Compare("==", rest, n.Num(0)), n.Compare("<", first, extent))
            other = n.Compare("<=", n.Num(1), rest)
        return [n.If(aligned, at_once), n.If((other,), n.Block((alone,)))]
