"""The shape of a turn: which loops it takes iterations of, how many lanes that makes, and how many of them compute.

A turn takes iterations of no loop, of one, or of two: (), (lanes) or (rows, lanes). A tile of two axes holds row after
row, ``pitch`` elements each, so that every row begins at a block; instructions go over whole tiles, pads too, and
nobody looks at what they make of pads.

``count`` lanes take part, at most ``capacity``. Where an instruction of the body takes whole repeats (comparisons), all of
the body computes ``padded`` lanes, and what copies left out is primed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.ascendc.expressions import Expression, Number
from kernelgen.ascendc.types import BLOCK, REPEAT
from kernelgen.machines.ascend.description import Machine
from kernelgen.targets.ascend.lower.program.lane_counters import Counting
from kernelgen.targets.ascend.lower.program.writer import Writer
from kernelgen.tensor.dtypes import BOOL, FLOAT64, INT64, UINT8, DType

QUANTUM = 128
"""Lanes of every tile are a multiple: whole repeats of two-byte types."""
MOST_ROWS = 248
"""Rows of a tile: one instruction takes them all, and Brcb takes eight at a time."""


@dataclass(frozen=True)
class Axis:
    """A loop of which a turn takes ``count`` iterations at once, at most ``capacity``."""

    variable: str
    count: Expression
    capacity: int


@dataclass(frozen=True)
class Turn:
    """One turn. ``depth`` is the writer's block of the turn's body; 0 where there is no loop of turns.

    ``width`` elements of a row of ``pitch`` are the last axis; the first of two has a row each.
    """

    writer: Writer
    machine: Machine
    counting: Counting
    axes: tuple[Axis, ...] = ()
    pitch: int = 1
    whole: bool = False
    depth: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The loops of the turn."""
        return tuple(axis.variable for axis in self.axes)

    @property
    def rows(self) -> Expression:
        """How many rows there are."""
        return self.axes[0].count if len(self.axes) == 2 else Number(1)

    @property
    def count(self) -> Expression:
        """How many lanes there are, pads between rows too."""
        match self.axes:
            case ():
                return Number(1)
            case (only,):
                return only.count
            case _:
                return self.rows * self.pitch

    @property
    def capacity(self) -> int:
        """The lanes of a tile."""
        if len(self.axes) == 2:
            return tile_lanes(self.axes[0].capacity * self.pitch)
        return tile_lanes(self.axes[0].capacity if self.axes else 1)

    @property
    def lanes(self) -> Expression:
        """How many lanes compute."""
        if not self.whole:
            return self.count
        if isinstance(self.count, Number):
            return Number(-(-int(self.count.value) // QUANTUM) * QUANTUM)
        return (self.count + (QUANTUM - 1)) // QUANTUM * QUANTUM

    @property
    def exact(self) -> bool:
        """Whether no lane is left over: copies fill all that compute."""
        known = isinstance(self.count, Number) and int(self.count.value) % QUANTUM == 0
        return known and (len(self.axes) < 2 or self.axes[1].count == Number(self.pitch))

    @property
    def level(self) -> int:
        """The depth of what is written now."""
        return len(self.writer.blocks) - 1

    def row_blocks(self, dtype: DType) -> int:
        """Blocks from row to row."""
        return self.pitch * dtype.itemsize // BLOCK

    def strips(self, dtype: DType, width: int | None = None) -> Iterator[tuple[int, int]]:
        """(first column, columns) of what a repeat takes of every row."""
        lanes, width = REPEAT // dtype.itemsize, self.pitch if width is None else width
        for first in range(0, width, lanes):
            yield first, min(lanes, width - first)


def stored_as(dtype: DType) -> DType:
    """The data type of a tile or an array in GM: no instruction moves a float64 but as its bits, a bool is a byte there."""
    return {BOOL: UINT8, FLOAT64: INT64}.get(dtype, dtype)


def tile_lanes(extent: int) -> int:
    """The lanes of a tile that holds so many."""
    return max(QUANTUM, -(-extent // QUANTUM) * QUANTUM)
