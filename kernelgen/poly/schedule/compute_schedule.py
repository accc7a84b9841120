"""Scheduling: when each instance runs.

The forest of shared outer loops comes from :mod:`kernelgen.poly.grouping.shared_loops`; below them each statement is
scheduled by isl's
Pluto-like scheduler on the dims that are left to it: validity is the order of an ordered statement (the instances of
others have none), coincidence is also the order in which it accumulates. Parametric statements are scheduled at
representative sizes and the tree is transplanted onto the parametric domain. Nothing here is trusted: the proof checks
the finished schedule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import islpy as isl

from kernelgen.poly.grouping.shared_loops import Forest, Leaf, Shared, align
from kernelgen.poly.model.relations import Relations, relations
from kernelgen.poly.model.scop import Iterator, Scop, Statement
from kernelgen.tensor.dims import Sym

REPRESENTATIVE_SIZES = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157)
"""Primes that symbols are taken for: no extent then is a multiple or a part of another by accident."""

SUBTRACTED_SIZES = (11, 13, 17, 19, 23, 29)
"""For symbols that are subtracted in an extent, which has to be positive: of an empty domain isl schedules nothing."""


def schedule(scop: Scop, whole: Relations) -> isl.Schedule:
    """A schedule tree over ``whole.domain``; bands know which members are coincident and if they may be permuted."""
    static = whole
    if whole.parameters:
        static = relations(scop, _sizes(scop), whole.context)
    return _Scheduler(scop, whole, static).sequence(align(scop))


def _sizes(scop: Scop) -> dict[str, int]:
    """What each symbol is taken for."""
    extents = {it.extent for statement in scop.statements for it in statement.iterators}
    terms = [term for extent in extents if isinstance(extent, Sym) for term in extent.terms]
    subtracted = {name for names, factor in terms if factor < 0 for name in names}
    tables = (REPRESENTATIVE_SIZES, SUBTRACTED_SIZES)
    chosen = ((k, name, tables[name in subtracted]) for k, name in enumerate(scop.symbols))
    return {name: table[k % len(table)] for k, name, table in chosen}


@dataclass(frozen=True)
class _Scheduler:
    scop: Scop
    whole: Relations
    static: Relations

    def sequence(self, forest: Forest) -> isl.Schedule:
        """The parts one after the other; halves are joined, since each joint costs as much as what it joins is long."""
        if len(forest) == 1:
            (part,) = forest
            return self.shared(part) if isinstance(part, Shared) else self.leaf(part)
        middle = len(forest) // 2
        return self.sequence(forest[:middle]).sequence(self.sequence(forest[middle:]))

    def shared(self, part: Shared) -> isl.Schedule:
        """The parts in sequence inside one band of coincident, permutable loops ``{ S[i] -> [i_k] }``."""
        statements = {s.name: s for s in self.scop.statements}
        members: list[tuple[str, bool]] = []
        for k, coincident in enumerate(part.coincident):
            chosen = [(statements[name], it[k]) for name, it in part.iterators.items()]
            members.append((_union(_coordinates(s, (position,)) for s, position in chosen), coincident))
            turns = [_turn(s, s.iterators[position]) for s, position in chosen]
            members += [(_union(turns), False)] if all(turns) else []
        outer = isl.MultiUnionPwAff.read_from_str(self.whole.context, f"[{', '.join(text for text, _ in members)}]")
        band = self.sequence(part.parts).insert_partial_schedule(outer).get_root().get_child(0).band_set_permutable(1)
        for k, (_, coincident) in enumerate(members):
            band = band.band_member_set_coincident(k, int(coincident))
        return band.get_schedule()

    def leaf(self, part: Leaf) -> isl.Schedule:
        """One statement over the dims that are left to it: isl's schedule of its projection, pulled back."""
        domain = isl.UnionSet(self.whole.domains[part.statement.name])
        if not part.iterators:
            return isl.Schedule.from_domain(domain)
        projection = isl.UnionPwMultiAff.read_from_str(
            self.whole.context, "{ " + _coordinates(part.statement, part.iterators, part.statement.name) + " }"
        )
        as_map = isl.UnionMap.from_union_pw_multi_aff(projection)
        found = self.scheduled(as_map, part.statement)
        if self.whole.parameters:
            found = transplant(found, domain.apply(as_map))
        return found.pullback_union_pw_multi_aff(projection).intersect_domain(domain)

    def scheduled(self, projection: isl.UnionMap, statement: Statement) -> isl.Schedule:
        """isl's schedule of the projected statement at static sizes."""
        own = isl.UnionSet(self.static.domains[statement.name])
        constraints = isl.ScheduleConstraints.on_domain(own.apply(projection))
        order = self.static.reduction_pairs.between(own)
        if statement.ordered:
            fixed = self.static.flow_pairs.between(own)
            order = order.union(fixed)
            constraints = constraints.set_validity(fixed.apply_domain(projection).apply_range(projection))
        order = order.apply_domain(projection).apply_range(projection)
        return constraints.set_coincidence(order).compute_schedule()


def transplant(static: isl.Schedule, domain: isl.UnionSet) -> isl.Schedule:
    """The same tree over another domain: filters and partial schedules name statements without bounds."""
    text = re.sub(r'domain: "[^"]*"', lambda _: f'domain: "{domain}"', static.to_str(), count=1)
    return isl.Schedule.read_from_str(domain.get_ctx(), text)


def _instance(statement: Statement) -> str:
    return f"{statement.name}[{', '.join(it.name for it in statement.iterators)}]"


def _turn(statement: Statement, iterator: Iterator) -> str:
    """``S[b, i] -> [length * floor(i / length)]`` where blocks are dealt out in turn: a loop over those of one ``b``."""
    blocks = iterator.blocks
    if blocks is None or not isinstance(blocks.extent, Sym):
        return ""
    return f"{_instance(statement)} -> [({blocks.length}*floor({blocks.of}/{blocks.length}))]"


def _union(parts: Iterable[str]) -> str:
    return "{ " + "; ".join(parts) + " }"


def _coordinates(statement: Statement, positions: Sequence[int], name: str = "") -> str:
    """``S[i0, i1] -> name[i1]``."""
    chosen = ", ".join(f"({statement.iterators[k].name})" for k in positions)
    return f"{_instance(statement)} -> {name}[{chosen}]"
