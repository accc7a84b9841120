"""The loops of windows, channel by channel: a few neighbours stay in registers while their windows are gone through.

    y[i, j, c] += x[i + a, j + b, c] * w[a, b, c]    ->    c by lanes; j by 14; a; vector c; b and j unrolled

What neighbours read in common is loaded once, since their taps stand side by side: 14 neighbours with 3 taps each read 16
elements. What whole tiles leave of the channels is in a narrower vector.

    an image that passes the caches    j by 14; c by lanes; ...        lines of all channels that lie together are read together
    groups of channels                 ...; vector c; k, b and j unrolled        channels k of a group are shuffles of one load
"""

from __future__ import annotations

from math import prod

from kernelgen.nest.marks import VECTOR
from kernelgen.nest.nodes import Buffer
from kernelgen.plan import LoopPlan, PiecePlan, VectorUnit, WholeTiles
from kernelgen.poly.mapping.axis import Band
from kernelgen.poly.model.scop import Statement
from kernelgen.poly.model.window_recognition import Window, window_of
from kernelgen.tensor.dims import Dim

MOST_NEIGHBOURS = 14
"""Of one row of windows: their sums, the taps and what they meet fill the registers."""

MOST_TERMS = 72
"""In the body of a loop, which takes as long to compile; with more, taps are gone through one after the other."""

MOST_SHUFFLED = 8 * MOST_TERMS
"""The same where they are channels of a group, too, which are gone through one after the other beyond this."""

PASSING_BYTES = 5 << 19
"""Of an image and of what is made of it, from which on the second cache of usual processors does not hold most of them."""

USUAL_NEIGHBOURS = 8
"""Where their number is not known."""


def window_members(band: Band) -> tuple[Window, dict[str, int]] | None:
    """The window of a band's only statement, with the member that follows each of its iterators; None for other bands."""
    found = {name: member for member, each in enumerate(band.axes) for _, name in each.follows}
    statements = {statement.name: statement for each in band.axes for statement, _ in each.follows}
    window = window_of(*statements.values()) if len(statements) == 1 else None
    if window is None or not {window.row, window.column, window.tap} <= found.keys():
        return None
    is_free = all(band.axes[found[name]].coincident for name in (window.row, window.column))
    return (window, found) if is_free and band.axes[found[window.tap]].reduces else None


def pieces_of_windows(band: Band, window: Window, found: dict[str, int], unit: VectorUnit) -> tuple[PiecePlan, ...]:
    """Pieces of whole vectors of a ``unit``, then of what is left of the channels: ``found`` are the members of the ``band``
    that follow the iterators of its ``window``.
    """
    row, column, tap = (found[name] for name in (window.row, window.column, window.tap))
    taps, extent = band.axes[tap].extents[0], band.axes[row].extents[0]
    count = neighbours(extent, taps, unit.registers)
    others = [m for m in range(len(band.axes)) if m not in (row, column, tap)]
    rest = tuple(LoopPlan(m) for m in others if band.axes[m].coincident)
    few = isinstance(taps, int) and taps * count <= MOST_TERMS
    shuffled = _shuffled(band, window, found, count, unit.lanes) if few else ()
    channels = tuple(LoopPlan(m, unroll=True) for m in shuffled)
    sums = tuple(LoopPlan(m) for m in others if not band.axes[m].coincident and m not in shuffled)
    inner = (LoopPlan(column, mark=VECTOR), *channels, LoopPlan(tap, unroll=True)) if few else (
        LoopPlan(tap), LoopPlan(column, mark=VECTOR)
    )  # fmt: skip
    unrolled = (*sums, *inner, LoopPlan(row, unroll=True))
    alone = (*sums, *inner)
    passes = _passes_caches(band.axes[row].follows[0][0])
    pieces: list[PiecePlan] = []
    for lanes in (unit.lanes, None):
        tiles = () if lanes is None else (LoopPlan(column, lanes),)
        whole = () if lanes is None else (WholeTiles(column, lanes),)
        if isinstance(extent, int) and extent <= count:
            pieces.append(PiecePlan((*rest, *tiles, *unrolled), whole))
            continue
        around = (LoopPlan(row, count), *tiles) if passes else (*tiles, LoopPlan(row, count))
        pieces.append(PiecePlan((*rest, *around, *unrolled), (*whole, WholeTiles(row, count))))
        if isinstance(extent, int):
            pieces.append(PiecePlan((*rest, *tiles, *unrolled), whole))
        else:
            pieces.append(PiecePlan((*rest, *tiles, LoopPlan(row), *alone), whole))
    return tuple(pieces)


def _shuffled(band: Band, window: Window, found: dict[str, int], count: int, lanes: int) -> tuple[int, ...]:
    """The member of the ``band`` over the channels of a group, by those that are ``found`` for the iterators of its
    ``window``, where the terms of a ``count`` of neighbours stand side by side: several groups share the ``lanes``. Else none.
    """
    if window.group is None or window.group.results >= lanes or window.group.channel not in found:
        return ()
    extents = [band.axes[found[name]].extents[0] for name in (window.group.channel, window.tap)]
    terms = prod(extent if isinstance(extent, int) else MOST_SHUFFLED for extent in extents)
    return (found[window.group.channel],) if terms * count <= MOST_SHUFFLED else ()


def _passes_caches(statement: Statement) -> bool:
    """Whether its image and results are too much for a cache; what is made for tiles is not."""
    if any(iterator.blocks for iterator in statement.iterators):
        return False
    image = max((_bytes(read.buffer) for read in statement.reads), default=0)
    return image + sum(_bytes(written.buffer) for written in statement.writes) >= PASSING_BYTES


def _bytes(buffer: Buffer) -> int:
    """Of extents that are not known none."""
    return prod(extent if isinstance(extent, int) else 0 for extent in buffer.shape) * buffer.dtype.itemsize


def neighbours(extent: Dim, taps: Dim, registers: int) -> int:
    """How many windows of a row of this ``extent`` are computed together: those that go through it in the fewest loads, with so
    many ``taps`` and ``registers``.
    """
    each = taps if isinstance(taps, int) else 1
    most = max(1, min(MOST_NEIGHBOURS, registers - each - 3, max(4, MOST_TERMS // each)))
    if not isinstance(extent, int):
        return min(most, USUAL_NEIGHBOURS)
    if extent <= most:
        return extent
    return min(range(1, most + 1), key=lambda count: (_loads(extent, count, taps), -count))


def _loads(extent: int, count: int, taps: Dim) -> int:
    """Of operands and taps, for all windows of a row."""
    each = taps if isinstance(taps, int) else 1
    whole, left = divmod(extent, count)
    return whole * (count + 2 * each) + (left + 4 * each if left else 0)
