"""Proofs: what is shown with isl about every kernel before it is printed. A failed proof is a compile error.

bounds      Every access of every instance is inside its buffer: ``access(domain) - box(buffer)`` is empty.
legality    Every dependence runs forward: ``{ time(B[j]) - time(A[i]) : A[i] -> B[j] in flow }`` is lexicographically
            positive. Reductions may take their terms in any order, so only flow counts.
parallel    For each loop marked parallel: no dependence, not even of a reduction, connects two of its iterations.
vector      For each loop marked vector: no flow dependence connects two of its iterations; what crosses is a declared
            reduction.
interleave  For each loop marked interleave: what is shown for parallel.

The checks look at the finished schedule tree and at the scop alone; how the schedule was found plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from kernelgen.errors import ProofError
from kernelgen.poly.map_cpu import INTERLEAVE, PARALLEL, VECTOR
from kernelgen.poly.relations import Relations, extent_text
from kernelgen.poly.scop import Scop
from kernelgen.poly.tree import Node, descendants, is_band


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
        """The facts of one check: bounds, legality, parallel, vector or interleave."""
        return tuple(fact for fact in self.facts if fact.check == check)


def prove(scop: Scop, whole: Relations, schedule: isl.Schedule) -> Proof:
    """All facts, or ProofError with the check, the offending relation and a witness."""
    return Proof((*_bounds(scop, whole), *_legality(whole, schedule), *_marks(whole, schedule)))


def _bounds(scop: Scop, whole: Relations) -> Iterator[Fact]:
    boxes = _boxes(scop, whole)
    for what, accesses in (("reads", whole.reads), ("writes", whole.stores.union(whole.accumulations))):
        outside = accesses.range().subtract(boxes)
        _require_empty("bounds", what, outside)
        yield Fact("bounds", what, "access(domain) - box")


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
    missing = whole.domain.subtract(schedule.get_domain())
    _require_empty("legality", "instances without a time", missing)
    yield Fact("legality", "every instance runs", "domain - scheduled")
    time = schedule.get_map()
    late = whole.flow.intersect(time.lex_ge_union_map(time))
    _require_empty("legality", "dependences that run backward", late)
    yield Fact("legality", "every dependence runs forward", "{ A -> B in flow : time(B) <= time(A) }")


def _marks(whole: Relations, schedule: isl.Schedule) -> Iterator[Fact]:
    everything = whole.flow.union(whole.reduction)
    for node in descendants(schedule.get_root()):
        if node.get_type() != isl.schedule_node_type.mark or not is_band(node.child(0)):
            continue
        mark, band = node.mark_get_id().get_name(), node.child(0)
        if mark not in (PARALLEL, VECTOR, INTERLEAVE):
            raise ProofError("marks", f"unknown mark {mark!r}")
        crossing = _crossing(whole.flow if mark == VECTOR else everything, band)
        _require_empty(mark, "dependences between iterations", crossing)
        yield Fact(mark, f"loop {_members(band)}", "{ A -> B : same outer iteration, other iteration of the loop }")


def _crossing(dependences: isl.UnionMap, band: Node) -> isl.UnionMap:
    """The dependences within one iteration of the outer loops that join different iterations of the band."""
    domain = band.get_domain()
    inside = dependences.intersect_domain(domain).intersect_range(domain)
    around = band.get_prefix_schedule_union_map()
    inside = inside.intersect(around.apply_range(around.reverse()))
    here = isl.UnionMap.from_multi_union_pw_aff(band.band_get_partial_schedule())
    return inside.subtract(here.apply_range(here.reverse()))


def _members(band: Node) -> str:
    return str(band.band_get_partial_schedule())


def _require_empty(check: str, subject: str, relation: isl.UnionSet | isl.UnionMap) -> None:
    if not relation.is_empty():
        witness = relation.sample_point() if isinstance(relation, isl.UnionSet) else relation.sample()
        raise ProofError(check, f"{subject}: {relation}", str(witness))
