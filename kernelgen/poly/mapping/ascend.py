"""Mapping to Ascend cores: which loop is dealt to the cores, which one becomes whole-tile vector instructions.

    y = f(x) over one axis       ->  block i by chunk; vector i
    y = f(x, b) over [i, j]      ->  block i by 64; rows i; vector j    where j is short: a tile of several rows
    softmax: [i] around [j] x 3  ->  block i by 16; rows i; vector j, three times   a row's values stay in the unified buffer
    colsum: [j (coincident), i]  ->  block j by strip; i; vector j      sums stay in the unified buffer, rows are copied
    sum of all: [i, j]           ->  rows i; vector j                   one core

A loop may be ``block`` when no dependence crosses it, ``vector`` or ``rows`` when it is coincident or only
reductions cross it: a tile has a row for each iteration of the one, a lane for each of the other. A core
gets no less than a few KB of work: copies below that cost their start, not their bytes.

Nothing is changed here: what is chosen is a :class:`kernelgen.plan.BandPlan` for each band, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.marks import BLOCK, ROWS, VECTOR
from kernelgen.plan import BandPlan, LoopPlan, Partials, PiecePlan, Plan
from kernelgen.poly.mapping.axis import Axis, Band, bands_of, element_stride
from kernelgen.poly.model.relations import Relations
from kernelgen.poly.model.scop import Access, Scop, Statement
from kernelgen.tensor.dims import Sym
from kernelgen.transforms.common.split_index_sets import unclamped

LEAST = 1024
"""Elements of a core at least: a copy of 4 KB takes twice its start."""
UNKNOWN_CHUNK = 8192
"""Elements of a core's turn where the extent is a size symbol."""
QUANTUM = 128
"""Elements that the share of a core is a multiple of, so that its copies are whole blocks of every data type."""
WHOLE = 16
"""Elements that are whole blocks of 32 bytes, of two bytes or more."""
STRIP = 2048
"""Results of a column reduction that stay in the unified buffer."""
SHORT = 1024
"""Elements of a row, up to which several are a tile."""
FEW = 16
"""Lanes below which a loop is too short to stand alone."""
TILE = 128
"""Rows that a tile need not have more of."""


def partials_on(machine: Machine) -> Partials:
    """A partial result for each core, which are added up behind a meeting of all cores."""
    return Partials(count=machine.cores, least=16384, fewest=4, nanoseconds=20_000.0, enough=8, strip=2048)


def choose(machine: Machine, schedule: isl.Schedule, scop: Scop, whole: Relations, plan: Plan) -> tuple[BandPlan, ...]:
    """The plan of every band of the ``schedule``, innermost first, for a ``machine``; ``whole`` are the relations of
    the ``scop``.

    ``plan`` decides nothing here. Where machines copy whole blocks alone, what several rows give a core does not share
    one with others.
    """
    chosen: tuple[BandPlan, ...] = ()
    for band in bands_of(schedule, scop, whole):
        inside = [plan for plan in chosen if set(plan.statements) <= set(band.statements)]
        chosen = (*chosen, _plan(band, machine.cores, all(map(_has_lanes, inside))))
    return chosen if machine.has_copy_pad else tuple(map(_in_blocks, chosen))


def _in_blocks(band: BandPlan) -> BandPlan:
    def rounded(loop: LoopPlan) -> LoopPlan:
        several = loop.mark == BLOCK and loop.tile is not None
        return replace(loop, tile=-(-(loop.tile or 1) // WHOLE) * WHOLE) if several else loop

    pieces = tuple(replace(piece, loops=tuple(map(rounded, piece.loops))) for piece in band.pieces)
    return replace(band, pieces=pieces)


def _has_lanes(band: BandPlan) -> bool:
    return any(loop.mark in (VECTOR, ROWS) for piece in band.pieces for loop in piece.loops)


def _plan(band: Band, cores: int, lanes: bool) -> BandPlan:
    loops, why = _leaf(band, cores) if band.is_leaf else _around(band, cores, lanes)
    return band.planned((PiecePlan(loops),), why)


def _around(band: Band, cores: int, lanes: bool) -> tuple[tuple[LoopPlan, ...], str]:
    """Row loops around other loops: one is dealt to the cores, one takes several rows at once where rows are short, or where
    some loop inside has no ``lanes``, but an order to keep.
    """
    axes, free = band.axes, band.permutable
    inner = _inside(axes)
    rows = _for_rows(axes, free) if not lanes or (inner is not None and inner <= SHORT) else None
    inner = inner or (1 if lanes else UNKNOWN_CHUNK // TILE)
    core = _for_cores(axes, rows, free, inner, cores) if band.outermost else None
    return _ordered(_Loops(core, rows, axes, free, cores), (), inner)


def _leaf(band: Band, cores: int) -> tuple[tuple[LoopPlan, ...], str]:
    """The loops around statements: the most contiguous one that may be is made of vector instructions.

    Where it is short, another one takes several iterations at once.
    """
    axes, free = band.axes, band.permutable
    allowed = [axis for axis in axes if axis.coincident or axis.reduces]
    if not free:
        allowed = [axis for axis in allowed if axis is axes[-1]]
    if not allowed:
        return _around(band, cores, lanes=True)
    last = max(allowed, key=lambda axis: (_worth(axis, band), _length(axis), axis.position))
    others = tuple(axis for axis in axes if axis is not last)
    rows = _for_rows(others, free, last) if last.extent is not None and last.extent <= SHORT else None
    core = _for_cores(others, rows, free, last.extent or 1, cores) if band.outermost else None
    if rows is not None and rows is not core and free:
        rows = _longer(rows, tuple(axis for axis in others if axis is not core), last)
    vector = LoopPlan(last.position, mark=VECTOR)
    chunk = (
        _chunk(last, STRIP if others else UNKNOWN_CHUNK, cores)
        if band.outermost and core is None and last.coincident
        else None
    )
    if chunk is None:
        return _ordered(_Loops(core, rows, others, free, cores), (vector,), last.extent or 1)
    loops, _ = _ordered(_Loops(None, rows, others, free, cores), (vector,), 1)
    return (LoopPlan(last.position, chunk, BLOCK), *loops), f"{chunk} of {last.name} for a core at once"


@dataclass(frozen=True)
class _Loops:
    """Loops of a band: the one that is dealt to so many cores, the one of tiles' rows, all of them, whether order is free."""

    core: Axis | None
    rows: Axis | None
    axes: tuple[Axis, ...]
    free: bool
    cores: int


def _ordered(loops: _Loops, vector: tuple[LoopPlan, ...], inner: int) -> tuple[tuple[LoopPlan, ...], str]:
    """Cores, what keeps its order, rows, lanes. ``inner`` is the work of one iteration of all of them."""
    core, rows = loops.core, loops.rows
    between = tuple(axis for axis in loops.axes if axis is not core and axis is not rows)
    if core is rows and between and not loops.free:
        rows = None
    plans = tuple(LoopPlan(axis.position) for axis in between)
    tile = () if rows is None else (LoopPlan(rows.position, mark=ROWS),)
    if core is None:
        why = "rows keep their order" if not vector else f"vectors along member {vector[0].member}"
        return (*plans, *tile, *vector), f"{why}, on one core"
    if core is rows:
        count = _share(core, inner, loops.cores)
        around = (LoopPlan(core.position, count, BLOCK), *plans)
        return (*around, *tile, *vector), f"{core.name} is dealt to the cores, {count} rows at once"
    count = (
        _rows(core, prod(axis.extent or 1 for axis in loops.axes if axis is not core) * inner, loops.cores)
        if vector
        else 1
    )
    if count == 1:
        return (LoopPlan(core.position, mark=BLOCK), *plans, *tile, *vector), f"{core.name} is dealt to the cores"
    around = (LoopPlan(core.position, count, BLOCK), LoopPlan(core.position))
    return (*around, *plans, *tile, *vector), f"{core.name} is dealt to the cores, {count} at once"


def _inside(axes: tuple[Axis, ...]) -> int | None:
    """The most iterations of the loops inside, for one of each of these; None where a size decides."""
    followed: dict[str, set[str]] = {}
    statements: dict[str, Statement] = {}
    for axis in axes:
        for statement, name in axis.follows:
            statements[statement.name] = statement
            followed.setdefault(statement.name, set()).add(name)
    most = 1
    for name, statement in statements.items():
        trips = [it.trips for it in statement.iterators if it.name not in followed[name]]
        known = [trip for trip in trips if isinstance(trip, int)]
        if len(known) < len(trips):
            return None
        most = max(most, prod(known))
    return most


def _worth(axis: Axis, band: Band) -> int:
    """How well copies go along a loop; few lanes alone are worse than elements apart, places without a step are worst."""
    alone = not any(_is_tile(axis, other) for other in band.axes if other is not axis)
    few = FEW if alone and axis.extent is not None and axis.extent < FEW else 0
    return axis.contiguity(unless=band.passing) - few - (0 if _is_regular(axis) else 2 * FEW)


def _is_regular(axis: Axis) -> bool:
    """Whether all accesses move by a known number of elements along it."""
    return all(
        element_stride(access, name) is not None
        for statement, name in axis.follows
        for access in (*statement.reads, *statement.writes)
    )


def _for_rows(axes: tuple[Axis, ...], free: bool, last: Axis | None = None) -> Axis | None:
    """The loop whose iterations may be rows of a tile: the longest where order is free, else the innermost."""
    allowed = [axis for axis in (axes if free else axes[-1:]) if axis.coincident or axis.reduces]

    def fitness(axis: Axis) -> tuple[bool, int, int]:
        return last is not None and _is_tile(last, axis), min(_length(axis), TILE), axis.position

    return max(allowed, key=fitness, default=None)


def _longer(rows: Axis, axes: tuple[Axis, ...], last: Axis) -> Axis:
    """Instead of few rows, or rows with gaps between them, the longest loop whose places are clamped:
    :mod:`kernelgen.transforms.common.split_index_sets` makes tiles of its pieces.

    In place of rows with gaps it takes one whose rows adjoin: a tile of those is copied as one stretch of memory.
    """
    found = [axis for axis in axes if axis.coincident and (axis.extent or 0) >= FEW and _is_tile(last, axis, True)]
    if (rows.extent or STRIP) >= FEW:
        found = [] if _adjoins(last, rows) else [axis for axis in found if _adjoins(last, axis)]
    return max(found, key=_length, default=rows)


def _adjoins(last: Axis, rows: Axis) -> bool:
    """Whether every access that moves along both has the next row behind the last element of this one."""
    across = {statement.name: name for statement, name in rows.follows}
    return all(
        element_stride(_unclamped(access), across.get(statement.name, "")) in (0, last.extent)
        for statement, name in last.follows
        for access in (*statement.reads, *statement.writes)
        if element_stride(access, name)
    )


def _is_tile(last: Axis, rows: Axis, peeled: bool = False) -> bool:
    """Whether every access moves by whole rows along the one and by elements along the other, if at all.

    With ``peeled`` rows may be clamped: the loop is taken apart where that begins and ends.
    """
    across = {statement.name: name for statement, name in rows.follows}
    for statement, name in last.follows:
        for access in (*statement.reads, *statement.writes):
            step = element_stride(access, name)
            row = element_stride(_unclamped(access) if peeled else access, across.get(statement.name, ""))
            if step not in (0, 1) or row is None or (step == 1 and 0 < row < (last.extent or 1)):
                return False
    return bool(across) and bool(last.follows)


def _unclamped(access: Access) -> Access:
    return replace(access, index=tuple(map(unclamped, access.index)))


def _for_cores(axes: tuple[Axis, ...], rows: Axis | None, free: bool, inner: int, cores: int) -> Axis | None:
    """The coincident loop that keeps most cores busy, the outermost of several; the first where order is fixed."""
    allowed = [axis for axis in axes if axis.coincident]
    if not free:
        return next(iter(allowed), None)

    def busy(axis: Axis) -> int:
        if axis.extent is None:
            return cores
        return min(cores, -(-axis.extent // (_share(axis, inner, cores) if axis is rows else 1)))

    return max(allowed, key=lambda axis: (busy(axis), -axis.position), default=None)


def _share(axis: Axis, inner: int, cores: int) -> int:
    """So many rows of ``inner`` elements are a core's turn, evenly dealt, that it has enough, and all cores have some."""
    if axis.extent is None:
        return max(1, UNKNOWN_CHUNK // inner)
    wanted = max(-(-LEAST // inner), -(-axis.extent // cores))
    blocks = -(-axis.extent // min(wanted, axis.extent))
    return -(-axis.extent // blocks)


def _length(axis: Axis) -> int:
    return min(axis.extent or STRIP, STRIP)


def _rows(axis: Axis, inner: int, cores: int) -> int:
    """So many rows are a core's turn that it has enough to do, where all are known to be short."""
    if axis.extent is None or inner >= LEAST:
        return 1
    wanted = max(-(-LEAST // inner), -(-axis.extent // cores))
    return max(1, min(wanted, axis.extent))


def _chunk(axis: Axis, unknown: int, cores: int) -> int | None:
    """Elements of a core's turn; None where there is too little to share."""
    if any(isinstance(extent, Sym) for extent in axis.extents):
        return unknown
    extent = axis.extent or 1
    if extent <= LEAST:
        return None
    share = -(-extent // cores)
    return max(LEAST, -(-share // QUANTUM) * QUANTUM)
