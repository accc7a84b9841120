"""Mapping to Ascend cores: which loop is dealt to the cores, which one becomes whole-tile vector instructions.

    y = f(x) over one axis       ->  block i by chunk; vector i
    softmax: [i] around [j] x 3  ->  block i; vector j, three times     a row's values stay in the unified buffer
    colsum: [j (coincident), i]  ->  block j by strip; i; vector j      sums stay in the unified buffer, rows are copied
    sum of all: [i, j]           ->  i; vector j                        one core

A loop may be ``block`` when no dependence crosses it, ``vector`` when it is coincident or only reductions cross it. A core
gets no less than a few KB of work: copies below that cost their start, not their bytes.

Nothing is changed here: what is chosen is a :class:`kernelgen.plan.BandPlan` for each band, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import islpy as isl

from kernelgen.dims import Dim, Sym
from kernelgen.plan import BandPlan, LoopPlan, Partials, PiecePlan, Plan
from kernelgen.poly.follow import Follows, follows, only_reductions_cross
from kernelgen.poly.map_cpu import element_stride
from kernelgen.poly.privatise import privatise
from kernelgen.poly.relations import Relations
from kernelgen.poly.scop import Scop, Statement
from kernelgen.poly.tree import Member, Node, bands, has_band_below, members, statement_names

BLOCK, VECTOR = "block", "vector"
CORES = 48
"""Vector cores of an A2, which the split is made for; a machine with fewer takes the rest in turn."""
LEAST = 1024
"""Elements of a core at least: a copy of 4 KB takes twice its start."""
UNKNOWN_CHUNK = 8192
"""Elements of a core's turn where the extent is a size symbol."""
QUANTUM = 128
STRIP = 2048
"""Results of a column reduction that stay in the unified buffer."""

PARTIALS = Partials(count=48, least=16384, fewest=4, nanoseconds=20_000.0, enough=8, strip=2048)


def privatise_cores(scop: Scop) -> Scop:
    """Partial results for the cores, which are added up behind a meeting of all cores."""
    return privatise(scop, PARTIALS)


def choose(schedule: isl.Schedule, scop: Scop, whole: Relations, plan: Plan) -> tuple[BandPlan, ...]:
    """The plan of every band of the schedule, innermost first."""
    root = schedule.get_root()
    if not root.n_children():
        return ()
    statements = {s.name: s for s in scop.statements}
    return tuple(_plan(node, outermost, statements, whole) for node, outermost in bands(root.child(0)))


@dataclass(frozen=True)
class _Axis:
    """A member of a band, and for each statement the iterator that it follows."""

    position: int
    coincident: bool
    reduces: bool
    follows: Follows

    @property
    def name(self) -> str:
        """The iterator that all follow, or several of them."""
        return "|".join(sorted({name for _, name in self.follows})) or "phase"

    @property
    def extents(self) -> tuple[Dim, ...]:
        """The iterations for each statement."""
        return tuple(it.trips for statement, name in self.follows for it in statement.iterators if it.name == name)

    @property
    def extent(self) -> int | None:
        """The most iterations; None when a size decides."""
        known = [extent for extent in self.extents if isinstance(extent, int)]
        return max(known, default=1) if len(known) == len(self.extents) else None

    def contiguity(self) -> int:
        """How well copies go along it: +2 contiguous, +1 the same element, -3 strided."""
        score = 0
        for statement, name in self.follows:
            for access in (*statement.reads, *statement.writes, *statement.writes):
                step = element_stride(access.index, access.buffer.shape, name)
                score += {0: 1, 1: 2}.get(step if step is not None else -1, -3)
        return score


def _axis(position: int, member: Member, node: Node, statements: dict[str, Statement], whole: Relations) -> _Axis:
    reduces = not member.coincident and only_reductions_cross(member, node, whole)
    return _Axis(position, member.coincident, reduces, follows(member, statements))


def _plan(node: Node, outermost: bool, statements: dict[str, Statement], whole: Relations) -> BandPlan:
    axes = tuple(_axis(k, member, node, statements, whole) for k, member in enumerate(members(node)))
    names = tuple(axis.name for axis in axes)
    loops, why = _around(axes, outermost) if has_band_below(node) else _leaf(node, axes, outermost)
    return BandPlan(statement_names(node), names, (PiecePlan(loops),), why)


def _around(axes: tuple[_Axis, ...], outermost: bool) -> tuple[tuple[LoopPlan, ...], str]:
    """Row loops around other loops: the first coincident one of the outermost band is dealt to the cores."""
    first = next((axis for axis in axes if axis.coincident), None) if outermost else None
    if first is None:
        return tuple(LoopPlan(axis.position) for axis in axes), "rows around other loops keep their order"
    rest = tuple(LoopPlan(axis.position) for axis in axes if axis is not first)
    return (LoopPlan(first.position, mark=BLOCK), *rest), f"{first.name} is dealt to the cores"


def _leaf(node: Node, axes: tuple[_Axis, ...], outermost: bool) -> tuple[tuple[LoopPlan, ...], str]:
    """The loops around statements: the most contiguous one that may be is made of vector instructions."""
    free = bool(node.band_get_permutable())
    allowed = [axis for axis in axes if axis.coincident or axis.reduces]
    if not free:
        allowed = [axis for axis in allowed if axis is axes[-1]]
    if not allowed:
        return _around(axes, outermost)
    last = max(allowed, key=lambda axis: (axis.contiguity(), _length(axis), axis.position))
    others = [axis for axis in axes if axis is not last]
    vector = LoopPlan(last.position, mark=VECTOR)
    if not outermost:
        return (*(LoopPlan(axis.position) for axis in others), vector), f"vectors along {last.name}"
    dealt = next((axis for axis in others if axis.coincident), None)
    if dealt is not None:
        rows = _rows(dealt, prod(axis.extent or 1 for axis in axes if axis is not dealt))
        rest = tuple(LoopPlan(axis.position) for axis in others if axis is not dealt)
        if rows == 1:
            return (LoopPlan(dealt.position, mark=BLOCK), *rest, vector), f"{dealt.name} is dealt to the cores"
        around = (LoopPlan(dealt.position, rows, BLOCK), LoopPlan(dealt.position))
        return (*around, *rest, vector), f"{dealt.name} is dealt to the cores, {rows} at once"
    loops = tuple(LoopPlan(axis.position) for axis in others)
    chunk = _chunk(last, STRIP if others else UNKNOWN_CHUNK)
    if not last.coincident or chunk is None:
        return (*loops, vector), f"vectors along {last.name}, on one core"
    return (LoopPlan(last.position, chunk, BLOCK), *loops, vector), f"{chunk} of {last.name} for a core at once"


def _length(axis: _Axis) -> int:
    return min(axis.extent or STRIP, STRIP)


def _rows(axis: _Axis, inner: int) -> int:
    """So many rows are a core's turn that it has enough to do, where all are known to be short."""
    if axis.extent is None or inner >= LEAST:
        return 1
    wanted = max(-(-LEAST // inner), -(-axis.extent // CORES))
    return max(1, min(wanted, axis.extent))


def _chunk(axis: _Axis, unknown: int) -> int | None:
    """Elements of a core's turn; None where there is too little to share."""
    if any(isinstance(extent, Sym) for extent in axis.extents):
        return unknown
    extent = axis.extent or 1
    if extent <= LEAST:
        return None
    share = -(-extent // CORES)
    return max(LEAST, -(-share // QUANTUM) * QUANTUM)
