"""Mapping to a GPU: which loops are dealt to blocks of threads, which ones to the threads of a block.

A top-level part of the schedule becomes one launch: what is between two parts is ordered on the whole device. Loops
marked ``block`` are independent. Where no loop inside is marked ``thread``, one thread runs one of their iterations;
else ``thread 128`` says that 128 threads run one together, and meet where they reduce.

    y = f(x) over [i, j]         ->  block i; block j                      neighbouring threads, neighbouring elements
    colsum: [j (coincident), i]  ->  block j; i                            a thread adds up a column, rows are coalesced
    rowsum: [i (coincident), j]  ->  block i; thread 128 j                 threads add up a row and meet
    softmax: [i] around [j] x 3  ->  block i; thread 128 j, three times    the row stays with its threads
    sum of all: [i, j]           ->  thread 256 i; thread 256 j            one block; partial sums of chunks come before
    x / sum of all x: [i]        ->  thread 256 i                          in the same block, if that has a few each to do

A loop may be ``block`` when no dependence crosses it, ``thread`` when only reductions do. Thread loops in each other are
one loop over all their iterations, so that either all of them or none may be reduced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf, prod

import islpy as isl

from kernelgen.machines.gpu.device import WARP, GpuMachine
from kernelgen.nest.index import is_by_data, stride
from kernelgen.nest.marks import BLOCK, UNMARKED, Mark, thread
from kernelgen.nest.nodes import Buffer, LoopKind
from kernelgen.plan import BandPlan, GpuPlan, LoopPlan, Partials, PiecePlan, Plan
from kernelgen.poly.mapping.axis import Axis, Band, bands_of
from kernelgen.poly.mapping.threads_per_row import Rows, width_of
from kernelgen.poly.model.product_recognition import has_sides
from kernelgen.poly.model.relations import Relations
from kernelgen.poly.model.scop import Access, Scop, Statement
from kernelgen.transforms.gpu.product_recognition import LEAST
from kernelgen.transforms.gpu.sink_row_values import is_light

WIDE = 4
"""Neighbours that a thread takes at once: rows of whole groups may go to a part of a warp and still fill sectors."""

EACH = 16
"""Elements of a thread of the only block, beyond which the whole device is sooner, a launch later.

Softmax of one row of 1024 on an H200: 1.7 us in place of 3.2, of 16384: 4.4 in place of 5.9, of 32768: 14 and 9, estimated.
"""


def partials_on(device: GpuMachine) -> Partials:
    """An independent iteration is a block of threads; each multiprocessor runs four of them.

    A block reads some 100 bytes in a nanosecond, so that for a row of 128 KB a second launch costs more than it saves.
    Rows share no loop over blocks with columns, which would have many rows one after the other: by the model of time the
    sums of 4096 rows of 1024 elements and of their columns take an H200 14 us apart and 130 together, of 256 by 768 4 and 25.
    """
    at_once = 4 * device.processors
    return Partials(
        count=1 << (at_once.bit_length() - 1), least=4096, fewest=4, nanoseconds=3_000.0, enough=at_once // 2, strip=32,
        terms=16, alone=32768, parallel=at_once, shared=False,
    )  # fmt: skip


def choose(
    device: GpuMachine, schedule: isl.Schedule, scop: Scop, whole: Relations, plan: Plan
) -> tuple[BandPlan, ...]:
    """The plan of every band of the ``schedule``, innermost first, for a ``device``; ``whole`` are the relations of
    the ``scop``, ``plan`` has the sizes to start from.
    """
    plans: list[BandPlan] = []
    part: list[_Band] = []
    last: list[BandPlan] = []
    for band in bands_of(schedule, scop, whole):
        part.append(_Band(band.node, band.axes, band.outermost, band.scop))
        if band.outermost:
            found = _Part(tuple(part), plan.gpu, scop, device)
            last = found.in_the_block_of(last) or found.plans()
            plans += last
            part = []
    return tuple(plans)


def _reduces(axis: Axis) -> bool:
    """Whether only reductions cross it, into places that no data decide."""
    return not any(_by_data(statement) for statement, _ in axis.follows) and axis.reduces


def _moves(axis: Axis) -> frozenset[tuple[str, int]]:
    """The results of reductions that are another element for another iteration: statement and place in it."""
    return frozenset(
        (statement.name, place)
        for statement, name in axis.follows
        for place, part in enumerate(statement.accumulations)
        if any(stride(i, name) != 0 for i in part.index)
    )


@dataclass(frozen=True)
class _Band(Band):
    """A band on a device: what is is ``passing`` takes no part in how well memory is touched."""

    def contiguity(self, member: int) -> int:
        """How well memory is touched when neighbouring threads run along a member."""
        return self.axes[member].contiguity(_last_stride, self.passing)

    @property
    def kept(self) -> list[int]:
        """The members that no dependence crosses."""
        return [k for k, axis in enumerate(self.axes) if axis.coincident]

    @property
    def has_columns(self) -> bool:
        """Whether memory is contiguous along a member that no dependence crosses."""
        best = max(range(len(self.axes)), key=lambda k: (self.contiguity(k), k), default=None)
        return best in self.kept

    @property
    def reduced(self) -> list[int]:
        """The members that reductions alone cross, as far as threads may share them; none inside of which kept ones stay.

        Threads that share ``[i, j]`` where ``r[i] += x`` and ``c[j] += x`` would meet in every element of both: they share
        one of the two, the longest, and each of them runs the other.
        """
        if not self.permutable and self.kept:
            return []
        alike: dict[frozenset[tuple[str, int]], list[int]] = {}
        for k, axis in enumerate(self.axes):
            if _reduces(axis):
                alike.setdefault(_moves(axis), []).append(k)
        return max(alike.values(), key=self._length, default=[])

    def _length(self, chosen: Sequence[int]) -> tuple[float, int]:
        iterations = self.iterations(chosen)
        return (inf if iterations is None else iterations, max(self.contiguity(k) for k in chosen))

    def iterations(self, chosen: Sequence[int]) -> int | None:
        """How often the chosen loops run together; None when a size decides."""
        extents = [self.axes[k].extent for k in chosen]
        return None if None in extents else prod(e for e in extents if e is not None)

    def ordered(self, marks: dict[int, Mark], why: str) -> BandPlan:
        """The loops with their marks: in the order of their ranks where the band allows it.

        What threads reduce together is inside of all that it is reduced for.
        """
        order = list(range(len(self.axes)))
        if self.permutable:
            best = max(order, key=lambda k: (self.axes[k].coincident, self.contiguity(k), k))
            kinds = [marks.get(k, UNMARKED).kind for k in order]
            reduced = any(kinds[k] is LoopKind.THREAD and not self.axes[k].coincident for k in order)
            ranks = {LoopKind.BLOCK: 0, LoopKind.THREAD: 2, LoopKind.SERIAL: 1 if reduced else 3}
            order.sort(key=lambda k: (ranks[kinds[k]], not self.axes[k].coincident, k == best, k))
        loops = tuple(LoopPlan(k, mark=marks.get(k, UNMARKED)) for k in order)
        return self.planned((PiecePlan(loops),), why)


@dataclass(frozen=True)
class _Part:
    """The bands of one launch, innermost first; the last one is around all others."""

    bands: tuple[_Band, ...]
    plan: GpuPlan
    scop: Scop
    device: GpuMachine

    def plans(self) -> list[BandPlan]:
        """What becomes of each band."""
        outer = self.bands[-1]
        if self.is_one_nest or self.is_product:
            return [self.alone(band, True) for band in self.bands]
        if self.is_blocks_of_rows:
            return self.rows_of_blocks()
        shared = [self.shared_loops(band) for band in self.bands]
        lengths = [band.iterations(chosen) for band, chosen in zip(self.bands, shared, strict=True)]
        known = [length for length in lengths if length is not None]
        longest = max(known, default=1) if len(known) == len(lengths) else None
        if any(not chosen and band.is_leaf for band, chosen in zip(self.bands, shared, strict=True)) or (
            longest is not None and longest < self.plan.least
        ):
            return [self.alone(band, band is outer) for band in self.bands]
        loops = any(0 < len(chosen) < len(band.axes) for band, chosen in zip(self.bands, shared, strict=True))
        each = 1 if loops and outer.kept else None
        width, why = self.width(longest, each, shared)
        return [
            band.ordered(dict.fromkeys(chosen, thread(width)) | self.block_marks(band, chosen, band is outer), why)
            for band, chosen in zip(self.bands, shared, strict=True)
        ]

    def in_the_block_of(self, before: Sequence[BandPlan]) -> list[BandPlan]:
        """The plans if the part runs in the only block of the launch before it, whose results it reads; else none.

        A launch costs more than a few elements for each thread.
        """
        marks = [loop.mark for plan in before for piece in plan.pieces for loop in piece.loops if loop.mark != UNMARKED]
        widths = [mark.width for mark in marks if mark.kind is LoopKind.THREAD]
        if not before or len(widths) < len(marks) or len(self.bands) != 1:
            return []
        band, width = self.bands[0], max(widths, default=1)
        count = band.iterations(band.kept)
        few = count is not None and count <= EACH * width and len(band.kept) == len(band.axes)
        if not few or not self.reads({name for plan in before for name in plan.statements}, band):
            return []
        why = f"{width} threads share {count} iterations: the block before is the only one of its launch"
        return [band.ordered(dict.fromkeys(band.kept, thread(width)) if width > 1 else {}, why)]

    def reads(self, makers: Collection[str], band: _Band) -> bool:
        """Whether the band reads what one of these statements writes, or what single elements are made of it."""
        own, made = set(band.statements), set[Buffer]()
        for statement in self.scop.statements:
            reads = any(read.buffer in made for read in statement.reads)
            if reads and statement.name in own:
                return True
            if statement.name in makers or (reads and not statement.iterators):
                made |= {write.buffer for write in statement.writes}
        return False

    @property
    def is_product(self) -> bool:
        """Whether it is one product of two factors, whose results are computed in tiles: no threads share a sum."""
        inner, outer = self.bands[0], self.bands[-1]
        statements = {s.name: s for axis in inner.axes for s, _ in axis.follows}.values()
        alone = len(self.bands) == 1 or (len(self.bands) == 2 and len(outer.kept) == len(outer.axes))
        return alone and len(statements) == 1 and all(has_sides(s, LEAST) for s in statements)

    @property
    def is_one_nest(self) -> bool:
        """Whether an independent outer band holds another one alone, whose columns neighbouring threads take.

        ``block b; band [i, j]`` with ``j`` kept: loops over ``j`` are then loops over blocks too. What the outer band
        computes besides is sunk into the inner one (:mod:`kernelgen.transforms.gpu.sink_row_values`).
        """
        inner, outer = self.bands[0], self.bands[-1]
        alone = len(self.bands) == 2 and len(outer.kept) == len(outer.axes) and bool(outer.axes)
        return alone and inner.permutable and inner.has_columns and self.sinks(outer, inner)

    def sinks(self, outer: _Band, inner: _Band) -> bool:
        """Whether all else that the outer band runs is light, and for the inner one alone."""
        names = set(outer.statements)
        others = [s for s in self.scop.statements if s.name in names - set(inner.statements)]
        made = {write.buffer.name for s in others for write in s.writes}
        users = {s.name for s in self.scop.statements if s.touched & made}
        return users <= names and all(not s.accumulations and is_light(s.body) for s in others)

    @property
    def is_blocks_of_rows(self) -> bool:
        """Whether an independent outer band holds another one alone, of rows that threads reduce: ``block b; band [i, j]``."""
        inner, outer = self.bands[0], self.bands[-1]
        alone = len(self.bands) == 2 and len(outer.kept) == len(outer.axes) and bool(outer.axes)
        rows = bool(inner.kept) and not inner.has_columns and bool(inner.reduced)
        return alone and inner.permutable and rows and self.sinks(outer, inner)

    def rows_of_blocks(self) -> list[BandPlan]:
        """A block for each kept iteration of both bands; threads share the loop that is contiguous if it is long, else all."""
        inner, outer = self.bands
        nearest = max(inner.reduced, key=lambda k: (inner.contiguity(k), k))
        extent = inner.axes[nearest].extent
        shared = [nearest] if extent is None or extent >= self.plan.long else inner.reduced
        width, why = self.width(inner.iterations(shared), None, [shared, []])
        marks = dict.fromkeys(inner.kept, BLOCK) | dict.fromkeys(shared, thread(width))
        return [inner.ordered(marks, why), self.alone(outer, True)]

    def shared_loops(self, band: _Band) -> list[int]:
        """The members that the threads of a block run together."""
        if not band.is_leaf:
            return []
        if band is self.bands[-1]:
            return [] if band.has_columns else band.reduced
        kept = band.iterations(band.kept)
        wide = band.kept and (kept is None or kept >= WARP or not band.reduced)
        return band.kept if wide else band.reduced

    def alone(self, band: _Band, is_outer: bool) -> BandPlan:
        """One thread runs one iteration of the block loops."""
        marks = dict.fromkeys(band.kept, BLOCK) if is_outer else {}
        return band.ordered(marks, "one thread for an iteration of the block loops" if marks else "in one thread")

    def block_marks(self, band: _Band, chosen: Sequence[int], is_outer: bool) -> dict[int, Mark]:
        return {k: BLOCK for k in band.kept if is_outer and k not in chosen}

    def width(self, longest: int | None, each: int | None, shared: Sequence[Sequence[int]]) -> tuple[int, str]:
        """How many threads share an iteration of the block loops, a power of two, and why.

        With ``each`` there are as many as take so many elements each.
        """
        if longest is None:
            return self.plan.usual, f"{self.plan.usual} threads share unknown iterations"
        outer = self.bands[-1]
        most = self.plan.most if outer.kept else self.plan.whole
        widths = [WARP // 8 if longest % WIDE == 0 else WARP]
        while widths[-1] < most and longest > widths[-1] * (each or WIDE):
            widths.append(2 * widths[-1])
        if each is not None:
            return widths[-1], f"{widths[-1]} threads share {longest} iterations"
        rows = Rows(outer.iterations(outer.kept), longest, self.reductions, self.held(shared), self.device)
        return width_of(rows, widths)

    @property
    def reductions(self) -> int:
        """How often threads combine their results."""
        inside = {s.name: s for band in self.bands for axis in band.axes for s, _ in axis.follows}
        return sum(bool(statement.accumulations) for statement in inside.values())

    def held(self, shared: Sequence[Sequence[int]]) -> int:
        """Bytes of an element that several bands touch along the shared loops."""
        touching: Counter[Buffer] = Counter()
        for band, chosen in zip(self.bands, shared, strict=True):
            moving = [follows for k in chosen for follows in band.axes[k].follows]
            accesses = [(access, name) for s, name in moving for access in (*s.reads, *s.writes)]
            touching.update({access.buffer for access, name in accesses if any(stride(i, name) for i in access.index)})
        return sum(buffer.dtype.itemsize for buffer, number in touching.items() if number > 1)


def _by_data(statement: Statement) -> bool:
    """Whether data decides where the statement accumulates."""
    return any(is_by_data(*part.index) for part in statement.accumulations)


def _last_stride(access: Access, name: str) -> int | None:
    """The stride along the innermost dim; None when another dim moves too.

    Unlike :func:`kernelgen.poly.mapping.axis.element_stride` it does not ask how long the dims inside are: threads that
    run along an outer dim count as strided, even where that dim's elements are neighbours.
    """
    steps = [stride(i, name) for i in access.index]
    if not steps or not any(steps[:-1]):
        return steps[-1] if steps else 0
    return None
