"""Mapping to a CPU: which loops run on several cores, which one runs on vector lanes, what is tiled for the cache.

For every innermost band the member whose vector loop touches memory most contiguously becomes the innermost loop and
is marked ``vector``; for every outermost band the first coincident member comes first and is marked ``parallel``.

    colsum: [j (coincident), i]  ->  parallel j by 2048; i by 8; vector j; i unrolled
                                     rows are read as they lie, sums stay in L1 and are touched once for eight rows
    transpose: [i, j]            ->  parallel i by 64; j by 64; interleave i; vector j
    y = f(x) over one axis       ->  parallel i by 16384; vector i
    matmul: [i, j, k]            ->  parallel j by 32; i by 8; k; vector j; i unrolled
                                     32 x 8 results stay in registers while k runs; what no whole block covers
                                     is a piece of its own

A permutable band may be reordered and tiled: no dependence has a negative component on any of its members. A member may
be ``vector`` when it is coincident, or when only reductions cross it (lanes then keep partial results). The loop around
a vector loop is marked ``interleave`` when an access is contiguous along it and strided along the vector loop.

Nothing is changed here: what is chosen is a :class:`kernelgen.plan.BandPlan` for each band, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl

from kernelgen.nest.marks import INTERLEAVE, PARALLEL, UNMARKED, VECTOR, Mark
from kernelgen.plan import BandPlan, CpuPlan, LoopPlan, PiecePlan, Plan, WholeTiles
from kernelgen.poly.mapping.axis import Axis, Band, bands_of, element_stride
from kernelgen.poly.mapping.constant_products import (
    ConstantProduct,
    Panels,
    block_of,
    constant_product,
    depth_of,
    image_rows,
    panel_axis,
    panels_of,
    pieces_of_constants,
    share_axis,
    share_of,
    stream_of,
    widths_of,
)
from kernelgen.poly.mapping.page_order import by_pages
from kernelgen.poly.mapping.register_blocks import pieces_along_columns, pieces_along_sum, pieces_turned
from kernelgen.poly.mapping.streamed_products import streaming_tiles
from kernelgen.poly.mapping.vector_axis import vector_last
from kernelgen.poly.mapping.windows import pieces_of_windows, window_members
from kernelgen.poly.model.product_recognition import is_product, moves
from kernelgen.poly.model.register_cost import Block, BlockRules, block_for, panel_widths
from kernelgen.poly.model.relations import Relations
from kernelgen.poly.model.scop import Scop
from kernelgen.tensor.dims import Dim, Sym
from kernelgen.transforms.cpu.pack_panels import LEAST_TURNED

FLOAT_BYTES = 4
"""Of a float32, for which columns of blocks are given: wider elements get fewer."""
ROWS_LEFT = 8
"""At most so many rows are left over by blocks of a product."""


def choose(schedule: isl.Schedule, scop: Scop, whole: Relations, plan: Plan) -> tuple[BandPlan, ...]:
    """The plan of every band of the ``schedule``, innermost first; ``whole`` are the relations of the ``scop``,
    ``plan`` has the sizes to start from.
    """
    found = [(band, constant_product(band, plan.cpu)) for band in bands_of(schedule, scop, whole)]
    panels: dict[str, Panels] = {}
    for band, sides in found:
        panels |= {} if sides is None else panels_of(band, sides, plan.cpu)
    return tuple(_Chooser(band, plan.cpu, scop, panels, sides).plan() for band, sides in found)


@dataclass(frozen=True)
class _Chosen:
    """Pieces of a band, and what spoke for them."""

    pieces: tuple[PiecePlan, ...]
    why: tuple[str, ...]


@dataclass(frozen=True)
class _Chooser:
    """The choices for one band. Members are numbers in ``band.axes``; ``constant`` is the product with one that it is."""

    band: Band
    limits: CpuPlan
    scop: Scop
    panels: Mapping[str, Panels]
    constant: ConstantProduct | None

    def plan(self) -> BandPlan:
        """The band as marked loops."""
        chosen = self.leaf() if self.band.is_leaf else self.outer()
        if self.band.outermost:
            pieces = tuple(replace(piece, loops=self.parallel(piece.loops)) for piece in chosen.pieces)
            chosen = _Chosen(pieces, (*chosen.why, self.parallel_reason(pieces[0])))
        return self.band.planned(chosen.pieces, "; ".join(chosen.why))

    def outer(self) -> _Chosen:
        """Row loops in the order of the schedule."""
        return _whole(tuple(map(LoopPlan, range(len(self.band.axes)))), "rows around other loops keep their order")

    def leaf(self) -> _Chosen:
        """The loops around statements: the best vector loop last."""
        order, reason = vector_last(self.band, self.limits.unit.lanes)
        product = self.windows() or self.constant_product() or self.product(order) if self.band.permutable else None
        if product is not None:
            return product
        if (chosen := self.by_panels(order)) is not None:
            return chosen
        last = order[-1]
        loops = tuple(map(LoopPlan, order[:-1]))
        mark, promise = self.vector_mark(last)
        found = (*loops, LoopPlan(last, mark=mark))
        if not loops:
            chosen = self.chunked(found[0]) if self.band.outermost else _whole(found)
        else:
            chosen = self.blocked(found) if self.band.permutable else _whole(found)
        return _Chosen(chosen.pieces, (*reason, promise, *chosen.why))

    def vector_mark(self, member: int) -> tuple[Mark, str]:
        """The mark of the innermost loop, and why."""
        name = self.band.axes[member].name
        if self.band.axes[member].coincident:
            return VECTOR, f"no dependence crosses {name}"
        if self.band.axes[member].reduces:
            return VECTOR, f"only reductions cross {name}"
        return UNMARKED, f"a dependence crosses {name}: no vectors"

    def parallel(self, loops: tuple[LoopPlan, ...]) -> tuple[LoopPlan, ...]:
        """The first coincident loop that has no mark, moved to the front and marked.

        Around products that hand rows on it is the first whose number is known, if there is one: heads rather than batches.
        """
        axes = self.band.axes
        found = [loop for loop in loops if axes[loop.member].coincident and loop.mark == UNMARKED]
        if not found:
            return loops
        hands_on = not self.scop.handing.isdisjoint(self.band.statements)
        known = [loop for loop in found if hands_on and axes[loop.member].extent is not None]
        chosen = (known or found)[0]
        return (replace(chosen, mark=PARALLEL, unroll=False), *(loop for loop in loops if loop is not chosen))

    def parallel_reason(self, piece: PiecePlan) -> str:
        first = piece.loops[0]
        if first.mark != PARALLEL:
            return "no outer loop is without dependences: one thread"
        return f"{self.band.axes[first.member].name} is the first loop that no dependence crosses: parallel"

    def chunked(self, loop: LoopPlan) -> _Chosen:
        """A single long loop in pieces, so that there is something to run in parallel."""
        axis, chunk = self.band.axes[loop.member], self.limits.chunk
        if not axis.coincident or not axis.is_longer_than(2 * chunk):
            return _whole((loop,))
        return _whole(
            (LoopPlan(loop.member, chunk), loop), f"{_extents(axis)} iterations: {chunk} for a thread at once"
        )

    def blocked(self, loops: tuple[LoopPlan, ...]) -> _Chosen:
        """Adds tile loops where they pay: around vector loops inside reductions, and for transposed accesses."""
        last = loops[-1].member
        axis = self.band.axes[last]
        if axis.coincident and not any(self.band.axes[loop.member].coincident for loop in loops[:-1]):
            return self.stripped(loops)
        transposed = self.transposed_partner(loops)
        if transposed is None:
            ordered, reason = by_pages(self.band.axes, loops)
            return _whole(ordered, *reason)
        partner, buffer = transposed
        rest = [loop for loop in loops[:-1] if loop.member != partner]
        size = self.limits.tile
        tiles = [LoopPlan(member, size) for member in (partner, last) if self.band.axes[member].is_longer_than(size)]
        inner = LoopPlan(partner, mark=INTERLEAVE if axis.coincident else UNMARKED)
        reason = f"{buffer} is contiguous along {self.band.axes[partner].name} and strided along {axis.name}"
        footprint = f": tiles of {size} x {size} use whole lines of both" if tiles else ": small enough for L1 as it is"
        return _whole((*rest, *tiles, inner, loops[-1]), reason + footprint)

    def stripped(self, loops: tuple[LoopPlan, ...]) -> _Chosen:
        """A vector loop inside reductions: strips whose partial results stay in L1, several rows at once."""
        last, strip = loops[-1].member, self.limits.strip
        axis = self.band.axes[last]
        rows, reason = self.several_rows(loops)
        if not axis.is_longer_than(2 * strip - 1):
            return _Chosen((PiecePlan(rows),), reason)
        text = f"{_extents(axis)} partial results: {strip} of them stay in L1"
        return _Chosen((PiecePlan((LoopPlan(last, strip), *rows)),), (text, *reason))

    def windows(self) -> _Chosen | None:
        """The neighbours of windows by channels; None for other bands."""
        found = window_members(self.band)
        if found is None:
            return None
        pieces = pieces_of_windows(self.band, *found, self.limits.unit)
        return _Chosen(pieces, (f"windows along {found[0].row}, channels {found[0].column}: neighbours share loads",))

    def constant_product(self) -> _Chosen | None:
        """The blocks of a product with a constant; None for other bands."""
        sides, axes = self.constant, self.band.axes
        if sides is None:
            return None
        rows: Dim = 1 if sides.row is None else axes[sides.row].extents[0]
        block, share = block_of(self.band, sides, self.limits), share_of(self.band, sides, self.limits)
        sums = [m for m, axis in enumerate(axes) if not axis.coincident]
        inside = image_rows(self.band, sides)
        taken = (sides.row, sides.column, *inside)
        rest = tuple(LoopPlan(m) for m, axis in enumerate(axes) if axis.coincident and m not in taken)
        rest += (*_shared(sides.row, share), *depth_of(self.band, sides, self.limits))
        stream = stream_of(self.band, sides, block, self.limits.unit.lanes)
        pieces = pieces_of_constants(
            sides,
            rest,
            sums,
            rows,
            block[0],
            widths_of(self.band, sides, self.limits),
            tuple(map(LoopPlan, inside)),
            stream=stream,
        )
        why = (
            f"a product with a constant, columns {axes[sides.column].name}: {block[0]} x {block[1]} take fewest cycles"
        )
        return _Chosen(pieces, (why,))

    def by_panels(self, order: tuple[int, ...]) -> _Chosen | None:
        """What follows a product with a constant, panel by panel; None for other bands."""
        found = panel_axis(self.band, self.panels) if self.band.permutable and self.band.outermost else None
        if found is None or found[0] != order[-1] or not all(axis.coincident for axis in self.band.axes):
            return None
        member, panels = found
        loops = (*map(LoopPlan, order[:-1]), LoopPlan(member, mark=VECTOR))
        share = _shared(share_axis(self.band, panels), panels.rows and panels.rows[1])
        pieces = (
            *(PiecePlan((*share, LoopPlan(member, w), *loops), (WholeTiles(member, w),)) for w in panels.widths),
            PiecePlan((*share, *loops)),
        )
        return _Chosen(pieces, (f"{panels.widths[0]} columns of a product lie in a cache until they are needed",))

    def product(self, order: tuple[int, ...]) -> _Chosen | None:
        """The blocks of a matrix product's results, and what is left of its rows and columns; None for other bands.

        The lanes are columns, or terms of the sum where that is how memory lies: then a block is of single results.
        """
        last, axes = order[-1], self.band.axes
        along_sum = not axes[last].coincident
        if along_sum and not axes[last].reduces:
            return None
        sides = self.sides(order, order if along_sum else (last,))
        if sides is None:
            return None
        row, column = sides
        sums = [m for m in order if not axes[m].coincident]
        rest = tuple(LoopPlan(m) for m in order if axes[m].coincident and m not in (row, column))
        names = f"rows {axes[row].name}, columns {axes[column].name}"
        block = self.shared_block(row, column)
        if block is not None and not (along_sum and self.is_short(row, block[0])):
            count, width = block
            widths = panel_widths(axes[column].extents[0], width, self.limits.unit.lanes)
            pieces = pieces_of_constants(ConstantProduct(row, column), rest, sums, axes[row].extents[0], count, widths)
            why = f"a product of {names} in blocks of rows, which share panels: {block[0]} x {block[1]} take fewest cycles"
            return _Chosen(pieces, (why,))
        if along_sum and (len(sums) > 1 or not self.turns(row, column)):
            rows, columns = self.points_of(row)
            pieces = pieces_along_sum(row, column, rest, sums, (rows, columns))
            lanes = "lanes are terms of the sum, as memory lies"
            if len(sums) == 1 and self.may_turn(row, column):
                pieces = pieces_turned(row, column, rest, sums, self.block_of(column), (rows, columns))
                lanes = f"{lanes}, and columns in whole blocks, which panels turn round"
        else:
            rows, columns = block = self.block_of(column)
            strip = self.limits.strip // ROWS_LEFT
            rest += streaming_tiles(self.band, row, column, sums, block, self.limits.threads)
            pieces = pieces_along_columns(row, column, rest, sums, axes[row].extents[0], (rows, columns), strip)
            lanes = "lanes are columns, " + ("which panels turn round" if along_sum else "as memory lies")
        why = f"a product of {names}: every element is used many times, {rows} x {columns} results stay in registers"
        return _Chosen(pieces, (why, lanes))

    def shared_block(self, row: int, column: int) -> Block | None:
        """Rows and columns of results that registers hold, where blocks of rows are counted and panels are for all of them."""
        ((statement, name),) = self.band.axes[row].follows
        length = next((it.blocks.length for it in statement.iterators if it.blocks and it.blocks.of == name), None)
        columns = self.band.axes[column].extents[0]
        if length is None or not isinstance(columns, int):
            return None
        return block_for(length, columns, BlockRules(self.limits.unit, whole=True))

    def block_of(self, column: int) -> tuple[int, int]:
        """Rows and columns of results that registers hold: fewer of wide ones, a vector more where that covers all columns."""
        rows, columns = self.limits.block
        ((statement, _),) = self.band.axes[column].follows
        size = max(part.buffer.dtype.itemsize for part in statement.accumulations)
        extent, unit = self.band.axes[column].extents[0], self.limits.unit
        more = columns // unit.lanes + 1
        fits = (rows + 1) * more < unit.registers
        if size == FLOAT_BYTES and fits and isinstance(extent, int) and extent % (more * unit.lanes) == 0:
            return rows, more * unit.lanes
        return rows, max(1, columns * FLOAT_BYTES // max(size, FLOAT_BYTES))

    def points_of(self, row: int) -> tuple[int, int]:
        """Rows and columns of single results that registers hold: no more rows than there are."""
        (rows, columns), extent = self.limits.points, self.band.axes[row].extents[0]
        return min(rows, extent) if isinstance(extent, int) else rows, columns

    def turns(self, row: int, column: int) -> bool:
        """Whether there are enough rows that the operand of the columns is packed, which also transposes it."""
        rows, columns = (self.band.axes[member].extents[0] for member in (row, column))
        ((statement, name),) = self.band.axes[column].follows
        along = [element_stride(access, name) for access in statement.writes]
        enough = isinstance(rows, int) and not self.is_short(row, self.limits.block[0])
        return enough and not (isinstance(columns, int) and columns < self.block_of(column)[1]) and set(along) == {1}

    def is_short(self, row: int, count: int) -> bool:
        """Whether there are too few rows, in blocks of so many, for panels of what the columns read."""
        rows = self.band.axes[row].extents[0]
        return isinstance(rows, int) and rows < LEAST_TURNED * count

    def may_turn(self, row: int, column: int) -> bool:
        """The same where sizes are open, so that it is not known whether there are."""
        rows, columns = self.band.axes[row], self.band.axes[column]
        ((statement, name),) = columns.follows
        along = [element_stride(access, name) for access in statement.writes]
        return rows.extent is None and columns.extent is None and set(along) == {1}

    def sides(self, order: tuple[int, ...], columns: tuple[int, ...]) -> tuple[int, int] | None:
        """A row and a column of a matrix product: a read moves with the column and stays along the row.

        Of several rows it is the innermost one that fills a block, or else the innermost one.
        """
        axes = self.band.axes
        for column in reversed(columns):
            pairs = axes[column].follows
            if len(pairs) != 1 or not axes[column].coincident or not is_product(pairs[0][0]):
                continue
            statement, name = pairs[0]
            reads = [read for read in map(moves, statement.reads) if name in read]
            rows = [
                row
                for row in reversed(order)
                if axes[row].coincident
                and row != column
                and any(other not in read for _, other in axes[row].follows for read in reads)
            ]
            long = [row for row in rows if axes[row].is_longer_than(self.limits.block[0] - 1)]
            if rows:
                return (long or rows)[0], column
        return None

    def several_rows(self, loops: tuple[LoopPlan, ...]) -> tuple[tuple[LoopPlan, ...], tuple[str, ...]]:
        """``i; vector j`` as ``i by rows; vector j; i unrolled``, when the rows divide the loop; and why."""
        row, rows = loops[-2].member, self.limits.rows
        axis = self.band.axes[row]
        extent = axis.extents[0] if len(axis.extents) == 1 else None
        if extent is None or isinstance(extent, Sym):
            return loops, ()
        while extent % rows:
            rows //= 2
        if rows < 2:
            return loops, ()
        unrolled = (*loops[:-2], LoopPlan(row, rows), loops[-1], LoopPlan(row, unroll=True))
        return unrolled, (f"{rows} of {extent} rows {axis.name} meet in registers before a partial result is touched",)

    def transposed_partner(self, loops: tuple[LoopPlan, ...]) -> tuple[int, str] | None:
        """The coincident member along which an access is contiguous that is strided along the vector loop; its buffer."""
        vector = dict((s.name, name) for s, name in self.band.axes[loops[-1].member].follows)
        for loop in loops[:-1]:
            axis = self.band.axes[loop.member]
            for statement, name in axis.follows if axis.coincident else ():
                for access in (*statement.reads, *statement.writes):
                    along = element_stride(access, name)
                    across = element_stride(access, vector.get(statement.name, ""))
                    if along == 1 and across not in (0, 1):
                        return loop.member, access.buffer.name
        return None


def _shared(row: int | None, share: int | None) -> tuple[LoopPlan, ...]:
    """The loop over the threads' shares of rows, where they are dealt."""
    return () if row is None or share is None else (LoopPlan(row, share),)


def _whole(loops: tuple[LoopPlan, ...], *why: str) -> _Chosen:
    """The loops for all of a band."""
    return _Chosen((PiecePlan(loops),), why)


def _extents(axis: Axis) -> str:
    return ", ".join(dict.fromkeys(str(extent) for extent in axis.extents))
