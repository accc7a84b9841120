"""What every mapping chooses among: the bands of a schedule, and the loops that their members may become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from kernelgen.nest.index import stride
from kernelgen.nest.nodes import Space
from kernelgen.plan import BandPlan, PiecePlan
from kernelgen.poly.model.relations import Relations
from kernelgen.poly.model.scop import Access, Scop
from kernelgen.poly.schedule.band_members import Follows, follows, only_reductions_cross
from kernelgen.poly.schedule.tree import Member, Node, bands, has_band_below, members, statement_names
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dims import Dim, Sym

Step = Callable[[Access, str], int | None]
"""How far an access moves when an iterator grows by 1; None when that is not constant."""


def element_stride(access: Access, name: str) -> int | None:
    """By how many elements of its buffer an access moves when iterator ``name`` grows by 1; None when that varies."""
    steps = [stride(i, name) for i in access.index]
    if any(step is None for step in steps):
        return None
    if not any(steps):
        return 0
    total: int = 0
    scale: Dim = 1
    for step, dim in zip(reversed(steps), reversed(access.buffer.shape), strict=True):
        if step and isinstance(scale, Sym):
            return None
        total += int(step or 0) * (int(scale) if isinstance(scale, int) else 0)
        scale = scale * dim
    return total


@dataclass(frozen=True)
class Axis:
    """A member of a band, and for each statement the iterator that it follows; others do not move with it."""

    position: int
    member: Member
    follows: Follows
    band: Node
    whole: Relations

    @property
    def coincident(self) -> bool:
        """Whether no dependence crosses the loop."""
        return self.member.coincident

    @cached_property
    def reduces(self) -> bool:
        """Whether dependences cross the loop, all of them of reductions."""
        return not self.coincident and only_reductions_cross(self.member, self.band, self.whole)

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

    def is_longer_than(self, limit: int) -> bool:
        """Whether the loop has more iterations; a symbolic loop counts as long."""
        return any(isinstance(extent, Sym) or extent > limit for extent in self.extents)

    def contiguity(self, step: Step = element_stride, unless: frozenset[str] = frozenset()) -> int:
        """How well memory is touched along it: +2 contiguous, +1 the same element, -3 strided; writes count twice.

        Buffers whose names are in ``unless`` do not count.
        """
        score = 0
        for statement, name in self.follows:
            for access in (*statement.reads, *statement.writes, *statement.writes):
                if access.buffer.name not in unless:
                    score += {0: 1, 1: 2}.get(-1 if (moved := step(access, name)) is None else moved, -3)
        return score


@dataclass(frozen=True)
class Band:
    """A band of the schedule of a scop, and its members."""

    node: Node
    axes: tuple[Axis, ...]
    outermost: bool
    scop: Scop

    @cached_property
    def is_leaf(self) -> bool:
        """Whether no band is below."""
        return not has_band_below(self.node)

    @property
    def permutable(self) -> bool:
        """Whether its members may change places."""
        return bool(self.node.band_get_permutable())

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """The names of the statements with instances in it."""
        return statement_names(self.node)

    @cached_property
    def passing(self) -> frozenset[str]:
        """The temporaries that nothing outside of the band touches: they need no memory."""
        inside = [s for s in self.scop.statements if s.name in self.statements]
        outside = {name for s in self.scop.statements if s.name not in self.statements for name in s.touched}
        made = {write.buffer for s in inside for write in s.writes}
        return frozenset(b.name for b in made if b.space is Space.WORKSPACE and b.name not in outside)

    def planned(self, pieces: Sequence[PiecePlan], why: str) -> BandPlan:
        """What becomes of it."""
        return BandPlan(self.statements, tuple(axis.name for axis in self.axes), tuple(pieces), why)


def bands_of(schedule: isl.Schedule, scop: Scop, whole: Relations) -> Iterator[Band]:
    """Every band of the ``schedule``, innermost first, with what the ``scop`` and its relations, ``whole``, say of its
    axes.
    """
    statements = {s.name: s for s in scop.statements}
    for node, outermost in bands(schedule.get_root()):
        found = enumerate(members(node))
        axes = tuple(Axis(k, m, follows(m, statements), node, whole) for k, m in found)
        yield Band(node, axes, outermost, scop)
