"""Which bytes a statement touches, where that is known: those of a tile or a part, of a copy in GM; else all of a buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kernelgen.ascendc.expressions import Expression
from kernelgen.ascendc.instructions import Call, Statement, Struct
from kernelgen.ascendc.types import BLOCK
from kernelgen.targets.ascend.lower.order.program_layout import Layout
from kernelgen.targets.ascend.lower.order.written_bytes import SHARES, Reach, fills_up, reach_of, share_of
from kernelgen.targets.ascend.lower.program.effects import Use

Numbers = Callable[[Expression], int | None]
"""Gives the value of an integer expression, None where data or a lost name decides it."""


@dataclass(frozen=True)
class Place:
    """Bytes ``low`` to ``high``, of each ``step`` only the first ``length`` where a step is given."""

    low: int
    high: int
    step: int = 0
    length: int = 0

    def meets(self, other: Place) -> bool:
        """Whether two places share a byte."""
        if self.high <= other.low or other.high <= self.low:
            return False
        if self.step and self.step == other.step:
            apart = (other.low - self.low) % self.step
            return apart < self.length or self.step - apart < other.length
        return True


Touched = tuple[str, Place, bool]
"""A memory of a core or a buffer, bytes, whether they are written."""


def touched_by(
    layout: Layout, number: Numbers, statement: Statement, uses: Sequence[Use]
) -> Iterator[tuple[str, Place, bool]]:
    """(memory of a core or buffer, bytes, written) of a statement."""
    for use in uses:
        if use.tensor in layout.tiles:
            tile = layout.tiles[use.tensor]
            yield tile.memory, _tile_place(layout, number, statement, use), use.write
        else:
            yield use.tensor, _global_place(layout, number, statement, use), use.write


def _tile_place(layout: Layout, number: Numbers, statement: Statement, use: Use) -> Place:
    """One copy of a tile: parts of it are told apart where cube instructions fill them."""
    tile = layout.tiles[use.tensor]
    base = layout.tiles[tile.alias] if tile.alias else tile
    low = layout.addresses[base.name]
    reach = reach_of(statement, use, tile.dtype.itemsize, number)
    if reach is not None:
        return _moved(low, reach)
    if base.copies > 1:
        offset = (number(use.offset) or 0) - (1 if fills_up(statement) else 0)
        low += offset * tile.dtype.itemsize // base.size * base.size
    share = share_of(statement, use)
    return Place(low, low + base.size) if share is None else Place(low + share, low + base.size, SHARES, 1)


def _global_place(layout: Layout, number: Numbers, statement: Statement, use: Use) -> Place:
    """The bytes of a copy; all of the buffer where data decides or its accesses are of several forms."""
    reach = reach_of(statement, use, layout.tensors[use.tensor].dtype.itemsize, number)
    if reach is not None and use.tensor not in layout.mixed:
        return _moved(0, reach)
    start = number(use.offset)
    if start is None or use.tensor in layout.mixed or not isinstance(statement, Call):
        return Place(0, 1 << 62)
    item = layout.tensors[use.tensor].dtype.itemsize
    copied = _copied(number, statement, item)
    if copied is None:
        return Place(0, 1 << 62)
    count, length, source_gap, target_gap = copied
    gap = target_gap if use.write else source_gap
    low = start * item
    high = low + (count - 1) * (length + gap) + length
    return Place(low, high, length + gap if count > 1 else 0, length)


def _copied(number: Numbers, call: Call, item: int) -> tuple[int, int, int, int] | None:
    """Bursts of a copy, bytes of each, bytes between two in source and target; None for others, and for the unknown."""
    sizes = next((a for a in call.arguments if isinstance(a, Struct)), None)
    if sizes is None:
        last = call.arguments[-1]
        count = number(last) if call.operation == "DataCopy" and isinstance(last, Expression) else None
        return None if count is None else (1, count * item, 0, 0)
    if not sizes.name.startswith("DataCopy"):
        return None
    values = [number(value) if isinstance(value, Expression) else None for value in sizes.values[:4]]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    unit = BLOCK if sizes.name == "DataCopyParams" else 1
    bursts, length, source_gap, target_gap = known
    return bursts, length * unit, source_gap * unit, target_gap * unit


def _moved(low: int, reach: Reach) -> Place:
    return Place(low + reach.low, low + reach.high, reach.step, reach.length)
