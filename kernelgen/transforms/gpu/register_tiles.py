"""The arithmetic of a product's tile by threads: each holds a few rows and columns of results in registers.

    for step in 0..16:
      a[0..4] = left[half, step, down * 4...]
      b[0..4] = right[half, step, across * 4...]
      acc[m, n] += a[m] * b[n]                    16 products for 8 numbers out of shared memory

Threads stand in a square of 16 x 16. A thread's rows and columns come in groups of 16 bytes, one group 16 groups after the
other, so that the threads of a warp read neighbouring places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelgen.machines.gpu.device import WIDEST_ACCESS
from kernelgen.nest import index as ix
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import (
    THREAD_INDICES,
    Accumulate,
    Alloc,
    Bind,
    Buffer,
    Call,
    Copy,
    Index,
    Load,
    Num,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.tensor.dtypes import DType
from kernelgen.transforms.gpu.shared_tiles import LANE, Panel, unrolled

SIDE = 16
"""Threads along a side of the square."""

ACROSS, DOWN, STEP = "across", "down", "step"
Finish = Callable[[Index, Index, tuple[Index, ...], int], list[Statement]]
"""What becomes of ``count`` neighbours of a row: its number in the tile, that of the first column, the place of the total
of the neighbour with number ``lane``."""


@dataclass(frozen=True)
class MicroTiles:
    """``down`` rows and ``across`` columns of results for each thread."""

    name: str
    down: int
    across: int
    dtype: DType

    @property
    def threads(self) -> int:
        """In a block."""
        return SIDE * SIDE

    @property
    def results(self) -> Buffer:
        """A thread's own results."""
        return Buffer(f"{self.name}_results", self.dtype, (self.down, self.across), Space.PRIVATE)

    def begin(self) -> list[Statement]:
        """Coordinates of the thread; results are 0."""
        x = Var(THREAD_INDICES[0])
        zero = Store(self.results, (Var("m"), Var("n")), neutral_element("add", self.dtype))
        return [
            Bind(DOWN, ix.floor_divide(x, Num(SIDE))),
            Bind(ACROSS, ix.modulo(x, Num(SIDE))),
            Alloc(self.results),
            unrolled("m", self.down, unrolled("n", self.across, zero)),
        ]

    def multiply(self, left: Panel, right: Panel, half: Index) -> list[Statement]:
        """Adds up the products of one tile."""
        a = Buffer(f"{self.name}_a", self.dtype, (self.down,), Space.PRIVATE)
        b = Buffer(f"{self.name}_b", self.dtype, (self.across,), Space.PRIVATE)
        term = Call("mul", (Load(a, (Var("m"),)), Load(b, (Var("n"),))), self.dtype)
        add = Accumulate(self.results, (Var("m"), Var("n")), "add", term)
        reads = [*self._read(a, left, half, DOWN), *self._read(b, right, half, ACROSS)]
        return [
            unrolled(
                STEP, left.depth, Alloc(a), Alloc(b), *reads, unrolled("m", self.down, unrolled("n", self.across, add))
            )
        ]

    def finish(self, do: Finish) -> list[Statement]:
        """Gives each run of neighbouring results to ``do``."""
        rows, columns = self._group(self.down), self._group(self.across)
        row = _spread(Var("m"), rows, DOWN)
        column = ix.multiply(ix.add(ix.multiply(Var("group"), Num(SIDE)), Var(ACROSS)), Num(columns))
        place = (Var("m"), ix.add(ix.multiply(Var("group"), Num(columns)), Var(LANE)))
        return [unrolled("m", self.down, unrolled("group", self.across // columns, *do(row, column, place, columns)))]

    def _group(self, count: int) -> int:
        return min(count, WIDEST_ACCESS // self.dtype.itemsize)

    def _read(self, own: Buffer, panel: Panel, half: Index, coordinate: str) -> list[Statement]:
        """A thread's part of a row of the shared array."""
        (count,) = own.shape
        assert isinstance(count, int)
        group = self._group(count)
        groups = count // group
        first = Var("group") if groups > 1 else Num(0)
        number = ix.multiply(ix.add(ix.multiply(first, Num(SIDE)), Var(coordinate)), Num(group))
        place = panel.place(half, number, Var(STEP))
        to = (ix.multiply(first, Num(group)),)
        move = Copy(own, to, panel.shared, place, group) if group > 1 else Store(own, to, Load(panel.shared, place))
        return [unrolled("group", groups, move) if groups > 1 else move]


def _spread(number: Index, group: int, coordinate: str) -> Index:
    """The place in the tile of a thread's own number along a side."""
    first = ix.multiply(
        ix.add(ix.multiply(ix.floor_divide(number, Num(group)), Num(SIDE)), Var(coordinate)), Num(group)
    )
    return ix.add(first, ix.modulo(number, Num(group)))
