"""Mapping to a GPU: which loops are dealt to blocks of threads, which ones to the threads of a block.

A top-level part of the schedule becomes one launch: what is between two parts is ordered on the whole device. Loops
marked ``block`` are independent. Where no loop inside is marked ``thread``, one thread runs one of their iterations;
else ``thread 128`` says that 128 threads run one together, and meet where they reduce.

    y = f(x) over [i, j]         ->  block i; block j                      neighbouring threads, neighbouring elements
    colsum: [j (coincident), i]  ->  block j; i                            a thread adds up a column, rows are coalesced
    rowsum: [i (coincident), j]  ->  block i; thread 128 j                 threads add up a row and meet
    softmax: [i] around [j] x 3  ->  block i; thread 128 j, three times    the row stays with its threads
    sum of all: [i, j]           ->  thread 256 i; thread 256 j            one block; partial sums of chunks come before

A loop may be ``block`` when no dependence crosses it, ``thread`` when only reductions do. Thread loops in each other are
one loop over all their iterations, so that either all of them or none may be reduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import islpy as isl

from kernelgen.dims import Dim
from kernelgen.nest.index import stride, values
from kernelgen.nest.nodes import Index
from kernelgen.nest.products import LEAST
from kernelgen.plan import BandPlan, GpuPlan, LoopPlan, Partials, PiecePlan, Plan
from kernelgen.poly.follow import Follows, follows, only_reductions_cross
from kernelgen.poly.privatise import privatise
from kernelgen.poly.relations import Relations
from kernelgen.poly.reuse import has_sides
from kernelgen.poly.scop import Scop, Statement
from kernelgen.poly.tree import Member, Node, bands, has_band_below, members, statement_names

BLOCK, THREAD = "block", "thread"
WARP = 32
WIDE = 4
"""Neighbours that a thread takes at once: rows of whole groups may go to a part of a warp and still fill sectors."""


GPU_PARTIALS = Partials(
    count=512, least=4096, fewest=4, nanoseconds=3_000.0, enough=264, strip=32, terms=16, alone=32768, parallel=528
)
"""An independent iteration is a block of threads; 132 multiprocessors run four of them each.

A block reads some 100 bytes in a nanosecond, so that for a row of 128 KB a second launch costs more than it saves.
"""


def privatise_blocks(scop: Scop) -> Scop:
    """Partial results for blocks of threads, which a second launch adds up."""
    return privatise(scop, GPU_PARTIALS)


def choose(schedule: isl.Schedule, scop: Scop, whole: Relations, plan: Plan) -> tuple[BandPlan, ...]:
    """The plan of every band of the schedule, innermost first."""
    root = schedule.get_root()
    if not root.n_children():
        return ()
    statements = {s.name: s for s in scop.statements}
    plans: list[BandPlan] = []
    part: list[_Band] = []
    for node, outermost in bands(root.child(0)):
        part.append(_Band(node, tuple(_Axis.of(member, statements, node, whole) for member in members(node))))
        if outermost:
            plans += _Part(tuple(part), plan.gpu).plans()
            part = []
    return tuple(plans)


@dataclass(frozen=True)
class _Axis:
    """A member of a band, the iterators that follow it, and whether only reductions cross it."""

    coincident: bool
    follows: Follows
    reduces: bool

    @staticmethod
    def of(member: Member, statements: dict[str, Statement], band: Node, whole: Relations) -> _Axis:
        pairs = follows(member, statements)
        settled = not any(_by_data(statement) for statement, _ in pairs)
        reduces = not member.coincident and settled and only_reductions_cross(member, band, whole)
        return _Axis(member.coincident, pairs, reduces)

    @property
    def name(self) -> str:
        """The iterator that all follow, or several of them."""
        return "|".join(sorted({name for _, name in self.follows})) or "phase"

    @property
    def extent(self) -> int | None:
        """The most iterations for a statement; None when a size decides."""
        extents = [it.extent for s, name in self.follows for it in s.iterators if it.name == name]
        return max((e for e in extents if isinstance(e, int)), default=1) if _known(extents) else None

    def contiguity(self) -> int:
        """How well memory is touched when neighbouring threads run along it: +2 contiguous, +1 the same, -3 strided."""
        score = 0
        for statement, name in self.follows:
            for access in (*statement.reads, *statement.writes, *statement.writes):
                step = _last_stride(access.index, name)
                score += {0: 1, 1: 2}.get(step if step is not None else -1, -3)
        return score


@dataclass(frozen=True)
class _Band:
    node: Node
    axes: tuple[_Axis, ...]

    @property
    def is_leaf(self) -> bool:
        """Whether no band is below."""
        return not has_band_below(self.node)

    @property
    def permutable(self) -> bool:
        """Whether its members may change places."""
        return bool(self.node.band_get_permutable())

    @property
    def kept(self) -> list[int]:
        """The members that no dependence crosses."""
        return [k for k, axis in enumerate(self.axes) if axis.coincident]

    @property
    def has_columns(self) -> bool:
        """Whether memory is contiguous along a member that no dependence crosses."""
        best = max(range(len(self.axes)), key=lambda k: (self.axes[k].contiguity(), k), default=None)
        return best in self.kept

    @property
    def reduced(self) -> list[int]:
        """The members that reductions alone cross; none where they cannot be put inside of the kept ones."""
        free = self.permutable or not self.kept
        return [k for k, axis in enumerate(self.axes) if axis.reduces and free]

    def iterations(self, chosen: Sequence[int]) -> int | None:
        """How often the chosen loops run together; None when a size decides."""
        extents = [self.axes[k].extent for k in chosen]
        return None if None in extents else prod(e for e in extents if e is not None)

    def ordered(self, marks: dict[int, str], why: str) -> BandPlan:
        """The loops with their marks: in the order of their ranks where the band allows it.

        What threads reduce together is inside of all that it is reduced for.
        """
        order = list(range(len(self.axes)))
        if self.permutable:
            best = max(order, key=lambda k: (self.axes[k].coincident, self.axes[k].contiguity(), k))
            reduced = any(marks.get(k, "").startswith(THREAD) and not self.axes[k].coincident for k in order)

            def rank(k: int) -> int:
                mark = marks.get(k, "").partition(" ")[0]
                return {BLOCK: 0, THREAD: 2, "": 1 if reduced else 3}[mark]

            order.sort(key=lambda k: (rank(k), not self.axes[k].coincident, k == best, k))
        loops = tuple(LoopPlan(k, mark=marks.get(k, "")) for k in order)
        names = tuple(axis.name for axis in self.axes)
        return BandPlan(statement_names(self.node), names, (PiecePlan(loops),), why)


@dataclass(frozen=True)
class _Part:
    """The bands of one launch, innermost first; the last one is around all others."""

    bands: tuple[_Band, ...]
    plan: GpuPlan

    def plans(self) -> list[BandPlan]:
        """What becomes of each band."""
        outer = self.bands[-1]
        if self.is_one_nest or self.is_product:
            return [self.alone(band, True) for band in self.bands]
        shared = [self.shared_loops(band) for band in self.bands]
        lengths = [band.iterations(chosen) for band, chosen in zip(self.bands, shared, strict=True)]
        known = [length for length in lengths if length is not None]
        longest = max(known, default=1) if len(known) == len(lengths) else None
        if any(not chosen and band.is_leaf for band, chosen in zip(self.bands, shared, strict=True)) or (
            longest is not None and longest < self.plan.least
        ):
            return [self.alone(band, band is outer) for band in self.bands]
        loops = any(0 < len(chosen) < len(band.axes) for band, chosen in zip(self.bands, shared, strict=True))
        width = self.width(longest, 1 if loops and outer.kept else self.plan.each, bool(outer.kept))
        why = f"{width} threads share {longest or 'unknown'} iterations"
        return [
            band.ordered(
                dict.fromkeys(chosen, f"{THREAD} {width}") | self.block_marks(band, chosen, band is outer), why
            )
            for band, chosen in zip(self.bands, shared, strict=True)
        ]

    @property
    def is_product(self) -> bool:
        """Whether it is one product of two factors, whose results are computed in tiles: no threads share a sum."""
        inner, outer = self.bands[0], self.bands[-1]
        statements = {id(s): s for axis in inner.axes for s, _ in axis.follows}.values()
        alone = len(self.bands) == 1 or (len(self.bands) == 2 and len(outer.kept) == len(outer.axes))
        return alone and len(statements) == 1 and all(has_sides(s, LEAST) for s in statements)

    @property
    def is_one_nest(self) -> bool:
        """Whether an independent outer band holds another one alone, whose columns neighbouring threads take.

        ``block b; band [i, j]`` with ``j`` kept: loops over ``j`` are then loops over blocks too.
        """
        inner, outer = self.bands[0], self.bands[-1]
        alone = len(self.bands) == 2 and len(outer.kept) == len(outer.axes) and bool(outer.axes)
        return alone and inner.permutable and inner.has_columns

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

    def block_marks(self, band: _Band, chosen: Sequence[int], is_outer: bool) -> dict[int, str]:
        return {k: BLOCK for k in band.kept if is_outer and k not in chosen}

    def width(self, longest: int | None, each: int, has_blocks: bool) -> int:
        """How many threads share an iteration of the block loops, ``each`` taking so many turns: a power of two."""
        if longest is None:
            return self.plan.usual
        width = WARP // 8 if longest % WIDE == 0 else WARP
        most = self.plan.most if has_blocks else self.plan.whole
        while width < most and longest > width * each:
            width *= 2
        return width


def _known(extents: Sequence[Dim]) -> bool:
    return all(isinstance(extent, int) for extent in extents)


def _by_data(statement: Statement) -> bool:
    """Whether data decides where the statement accumulates."""
    return any(True for part in statement.accumulations for i in part.index for _ in values(i))


def _last_stride(index: tuple[Index, ...], name: str) -> int | None:
    """The stride along the innermost dim; None when another dim moves too."""
    steps = [stride(i, name) for i in index]
    if not steps or not any(steps[:-1]):
        return steps[-1] if steps else 0
    return None
