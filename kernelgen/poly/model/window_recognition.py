"""Statements that reduce windows, channel by channel: depthwise convolutions and pools with channels last.

    y[n, i, j, c] += x[n, 2 i + a, 2 j + b, c] * w[a, b, c]        j and b move along one dim of x, c is last

    y[n, i, j, c] += x[n, i + a, j + b, 4 (c / 4) + k] * w[a, b, k, c]    by groups: c is last, lanes are of several ones

Windows of neighbours overlap, so that a few neighbours along ``j`` are computed together: each element of x is loaded once
for all of them. Lanes are channels. Rows of windows may be shared with what follows; the loops inside may not, for they
would take the neighbours apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod

from kernelgen.composite.window_shapes import FEW_CHANNELS, FEW_TAPS
from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Index, IndexBinary, IndexOp, Num, Var
from kernelgen.poly.model.product_recognition import is_product, kept_names, moves
from kernelgen.poly.model.scop import Access, Statement

MOST_WEIGHT_BYTES = 1 << 19
"""Of weights that the second cache of usual processors holds while row after row of an image passes them."""


@dataclass(frozen=True)
class Group:
    """The iterator over the channels of the image that a result's group has, and how many ``results`` there are of each."""

    channel: str
    results: int


@dataclass(frozen=True)
class Window:
    """Iterators of a statement: ``row`` is what neighbours follow each other along, ``tap`` moves along the same dim of an
    operand, ``column`` is what lies together; ``group`` is what each result sums where it has more than one channel.
    """

    row: str
    column: str
    tap: str
    group: Group | None = None


def window_of(statement: Statement) -> Window | None:
    """The iterators of such a statement; None of another one."""
    if statement.ordered or len(statement.accumulations) != 1 or is_product(statement):
        return None
    (target,) = statement.accumulations
    kept, last = kept_names(statement), target.index[-1] if target.index else None
    if not isinstance(last, Var) or len(kept) < 2:
        return None
    for read in statement.reads:
        if not read.index:
            continue
        group = _group(read.index[-1], last)
        if read.index[-1] != last and (group is None or group.channel in kept):
            continue
        found = [pair for pair in _pairs(read, kept, statement) if pair[0] != last.name]
        if found:
            row, tap = found[-1]
            return Window(row, last.name, tap, group)
    return None


def _group(place: Index, last: Var) -> Group | None:
    """The group of the channel ``last``, of which a place has any channel; None for other places."""
    match place:
        case IndexBinary(
            IndexOp.ADD, IndexBinary(IndexOp.MUL, IndexBinary(IndexOp.DIV, own, Num(count)), Num()), Var(name)
        ):
            return Group(name, count) if own == last else None
        case _:
            return None


def rows_of_images(statement: Statement, constants: frozenset[str]) -> frozenset[str]:
    """The iterators over images and their rows, where a product multiplies pixels or windows that are not constant; else none.

    What follows may share those loops: neighbours of a row and channels are left for blocks of results. Weights that no cache
    keeps for the next row are not passed row by row.
    """
    kept, reads = kept_names(statement), [read for read in statement.reads if read.buffer.name not in constants]
    if len(reads) != 1 or len(statement.reads) == 1 or not is_product(statement):
        return frozenset()
    if passes_panels_once(statement, constants):
        return frozenset()
    found = _pairs(reads[0], kept, statement)
    around = kept[: kept.index(found[-1][0])] if found else kept[:-2]
    moving = {name for place in reads[0].index for name in variables(place)}
    return frozenset(around) if moving.issuperset(around) else frozenset()


def rows_around_places(statement: Statement, constants: frozenset[str]) -> frozenset[str]:
    """The iterators over rows that stand before the places of tiles, each of which has weights of its own among the
    ``constants``: :mod:`kernelgen.poly.grouping.places_inside` puts them there. Neighbours in a row stand behind places.
    """
    held = [moves(read) for read in statement.reads if read.buffer.name in constants]
    others = [moves(read) for read in statement.reads if read.buffer.name not in constants]
    if len(held) != 1 or len(others) != 1 or not is_product(statement):
        return frozenset()
    kept = kept_names(statement)
    places = [number for number, name in enumerate(kept) if name in held[0] & others[0]]
    if len(places) != 1 or held[0].issuperset(kept[places[0] :]):
        return frozenset()
    return frozenset(kept[: places[0]])


def passes_panels_once(statement: Statement, constants: frozenset[str]) -> bool:
    """Whether all rows of an image pass a panel of weights before the next panel is read, in a product of known extents.

    Else each row passes all panels, which come from the third cache every time where the second one does not hold them. An
    image is less than that, and each of its elements is multiplied by a whole panel.
    """
    weights = [read.buffer for read in statement.reads if read.buffer.name in constants]
    size = max(
        (prod(dim if isinstance(dim, int) else inf for dim in each.shape) * each.dtype.itemsize for each in weights),
        default=0,
    )
    return MOST_WEIGHT_BYTES < size < inf and all(isinstance(it.extent, int) for it in statement.iterators[1:])


def tap_of_few(statement: Statement, row: str, constants: frozenset[str]) -> str | None:
    """The iterator over the taps of windows along ``row``, where the ``statement`` sums few channels of what is not among
    the ``constants``; else None.
    """
    kept, reads = kept_names(statement), [read for read in statement.reads if read.buffer.name not in constants]
    found = _pairs(reads[0], kept, statement) if len(reads) == 1 else []
    if not found or found[-1][0] != row:
        return None
    tap, windows = found[-1][1], {name for pair in found for name in pair}
    others = [it.extent for it in statement.iterators if it.name not in kept and it.name not in windows]
    is_small = all(
        it.name != tap or (isinstance(it.extent, int) and it.extent <= FEW_TAPS) for it in statement.iterators
    )
    return tap if is_small and all(isinstance(extent, int) and extent <= FEW_CHANNELS for extent in others) else None


def _pairs(read: Access, kept: tuple[str, ...], statement: Statement) -> list[tuple[str, str]]:
    """For each dim that windows slide along: the iterator that is kept, and the one of known extent that is summed."""
    every = {it.name for it in statement.iterators}
    summed = {it.name for it in statement.iterators if it.name not in kept and isinstance(it.extent, int)}
    found: list[tuple[str, str]] = []
    for place in read.index:
        moving = variables(place) & every  # a place that is kept inside of an open image has its size in it
        rows, taps = moving & frozenset(kept), moving & summed
        if len(rows) == len(taps) == 1 and len(moving) == 2:
            (row,), (tap,) = rows, taps
            found.append((row, tap))
    return found
