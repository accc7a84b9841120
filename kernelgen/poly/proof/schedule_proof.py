"""Proofs: what is shown with isl about every kernel before it is printed. A failed proof is a compile error.

bounds      Every access of every instance is inside its buffer: ``access(domain) - box(buffer)`` is empty.
written     Every element of a temporary that is read is one that some instance writes: ``reads(domain) - writes(domain)``
            is empty. Which comes first is a question of legality.
legality    Every dependence runs forward: ``{ time(B[j]) - time(A[i]) : A[i] -> B[j] in flow }`` is lexicographically
            positive. Reductions may take their terms in any order, so only flow counts.
parallel    For each loop marked parallel: no dependence, not even of a reduction, connects two of its iterations.
vector      For each loop marked vector: no flow dependence connects two of its iterations; what crosses is a declared
            reduction.
interleave  For each loop marked interleave or block: what is shown for parallel; for one marked thread: for vector.
pieces      For each statement whose domain is taken in pieces: all terms of one result are in one piece, because the loops
            of a piece start from the neutral element.

The checks look at the finished schedule tree and at the scop alone; how the schedule was found plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import islpy as isl

from kernelgen.errors import ArgumentError, ProofError
from kernelgen.nest.nodes import LoopKind
from kernelgen.poly.model.relations import Relations, extent_text
from kernelgen.poly.model.scop import Scop
from kernelgen.poly.model.statement_pairs import Pairs, by_statement, sets_by_tuple
from kernelgen.poly.schedule.marks import is_mark, mark_of
from kernelgen.poly.schedule.tree import Node, descendants, is_band

_Kind = TypeVar("_Kind", isl.UnionSet, isl.Map)

REDUCIBLE = (LoopKind.VECTOR, LoopKind.THREAD, LoopKind.ROWS)
"""The kinds of loops whose iterations may accumulate into one result; those of all others share nothing."""


@dataclass(frozen=True)
class Fact:
    """One thing that was shown: ``relation`` is empty because of it."""

    check: str
    subject: str
    relation: str

    def __str__(self) -> str:
        return f"{self.check:<10} {self.subject}: {self.relation} is empty"


@dataclass(frozen=True)
class Proof:
    """The certificate of a kernel. Prints one fact a line."""

    facts: tuple[Fact, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.facts))

    def about(self, check: str) -> tuple[Fact, ...]:
        """The facts of one check: bounds, legality, pieces, or the mark of a loop."""
        return tuple(fact for fact in self.facts if fact.check == check)


def prove(scop: Scop, whole: Relations, schedule: isl.Schedule) -> Proof:
    """All facts of a ``schedule`` of a ``scop``, whose relations are ``whole``.

    Raises ProofError with the check, the offending relation and a witness.
    """
    return Proof(
        (
            *_bounds(scop, whole),
            *_written(scop, whole),
            *_legality(whole, schedule),
            *_marks(whole, schedule),
            *_pieces(whole, schedule),
        )
    )


def _bounds(scop: Scop, whole: Relations) -> Iterator[Fact]:
    boxes = _boxes(scop, whole)
    for what, accesses in (("reads", whole.reads), ("writes", whole.writes)):
        _require_inside("bounds", what, accesses.range(), boxes)
        yield Fact("bounds", what, "access(domain) - box")


def _written(scop: Scop, whole: Relations) -> Iterator[Fact]:
    """Of temporaries of which statements run over tiles, whose numbers alone say what is where."""
    tiled = {
        write.buffer.name
        for statement in scop.statements
        if any(it.blocks is not None and it.blocks.overlapping is not None for it in statement.iterators)
        for write in statement.writes
    }
    if not tiled:
        return
    read, made = (sets_by_tuple(accesses.range()) for accesses in (whole.reads, whole.writes))
    for name in sorted(tiled & read.keys()):
        _require_inside("written", name, isl.UnionSet(read[name]), isl.UnionSet(made[name]))
        yield Fact("written", name, "reads(domain) - writes(domain)")


def _boxes(scop: Scop, whole: Relations) -> isl.UnionSet:
    """The union of all buffers: { x[d0, d1] : 0 <= d < extent }."""
    parts: list[str] = []
    for buffer in scop.buffers:
        dims = [f"d{k}" for k in range(len(buffer.shape))]
        extents = [extent_text(d, whole.parameters) for d in buffer.shape]
        bounds = " and ".join(f"0 <= {d} < {e}" for d, e in zip(dims, extents, strict=True)) or "true"
        parts.append(f"{buffer.name}[{', '.join(dims)}] : {bounds}")
    header = f"[{', '.join(whole.parameters.values())}] -> "
    return isl.UnionSet.read_from_str(whole.context, f"{header}{{ {'; '.join(parts)} }}")


def _legality(whole: Relations, schedule: isl.Schedule) -> Iterator[Fact]:
    _require_inside("legality", "instances without a time", whole.domain, schedule.get_domain())
    yield Fact("legality", "every instance runs", "domain - scheduled")
    time = by_statement(schedule.get_map())
    for pair in whole.flow_pairs:
        late = pair.relation.intersect(time[pair.source].lex_ge_map(time[pair.target]))
        _require_empty("legality", "dependences that run backward", late)
    yield Fact("legality", "every dependence runs forward", "{ A -> B in flow : time(B) <= time(A) }")


def _marks(whole: Relations, schedule: isl.Schedule) -> Iterator[Fact]:
    everything = whole.flow_pairs.and_those_of(whole.reduction_pairs)
    for node in descendants(schedule.get_root()):
        if not is_mark(node) or not is_band(node.get_child(0)):
            continue
        kind, band = _promised(node), node.get_child(0)
        for together, same in _meeting(whole.flow_pairs if kind in REDUCIBLE else everything, band):
            _require_inside(kind.value, "dependences between iterations", together, same)
        subject = f"loop {_members(band)}"
        yield Fact(kind.value, subject, "{ A -> B : same outer iteration, other iteration of the loop }")


def _promised(node: Node) -> LoopKind:
    try:
        return mark_of(node).kind
    except ArgumentError as error:
        raise ProofError("marks", str(error)) from error


def _meeting(dependences: Pairs, band: Node) -> Iterator[tuple[isl.Map, isl.Map]]:
    """The dependences within one iteration of the outer loops, and all that is within one iteration of the band."""
    pairs = list(dependences.inside(band.get_domain()))
    if not pairs:
        return
    around = by_statement(band.get_prefix_schedule_union_map())
    here = by_statement(isl.UnionMap.from_multi_union_pw_aff(band.band_get_partial_schedule()))
    for pair in pairs:
        together, same = (at[pair.source].apply_range(at[pair.target].reverse()) for at in (around, here))
        yield pair.relation.intersect(together), same


def _pieces(whole: Relations, schedule: isl.Schedule) -> Iterator[Fact]:
    for node in descendants(schedule.get_root()):
        if node.get_type() != isl.schedule_node_type.sequence:
            continue
        pieces: dict[str, list[isl.Set]] = {}
        for k in range(node.n_children()):
            sets = node.get_child(k).filter_get_filter().get_set_list()
            for each in (sets.get_at(j) for j in range(sets.n_set())):
                pieces.setdefault(each.get_tuple_name(), []).append(each)
        for name, parts in pieces.items():
            if len(parts) > 1:
                for divided in _divided(whole, node, name, parts):
                    _require_empty("pieces", "terms of one result in two pieces", divided)
                yield Fact("pieces", name, "{ A -> B : same result, same outer iteration, other piece }")


def _divided(whole: Relations, sequence: Node, name: str, parts: Sequence[isl.Set]) -> Iterator[isl.Map]:
    """The terms of one result, within one iteration of the outer loops, that are in different parts."""
    around = by_statement(sequence.get_prefix_schedule_union_map())[name]
    together = around.apply_range(around.reverse())
    for pair in whole.reduction_pairs.by_source.get(name, ()):
        terms = pair.relation.union(pair.relation.reverse()).intersect(together)
        for first, second in combinations(parts, 2):
            yield terms.intersect_domain(first).intersect_range(second)


def _members(band: Node) -> str:
    return str(band.band_get_partial_schedule())


def _require_inside(check: str, subject: str, inner: _Kind, outer: _Kind) -> None:
    if not inner.is_subset(outer):
        raise _failed(check, subject, inner.subtract(outer))


def _require_empty(check: str, subject: str, relation: isl.Map) -> None:
    if not relation.is_empty():
        raise _failed(check, subject, relation)


def _failed(check: str, subject: str, relation: isl.UnionSet | isl.Map) -> ProofError:
    witness = relation.sample_point() if isinstance(relation, isl.UnionSet) else relation.sample()
    return ProofError(check, f"{subject}: {relation}", str(witness))
