"""What mappings ask of a member of a band: which iterators it moves along, and what crosses it."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from kernelgen.poly.model.relations import Relations
from kernelgen.poly.model.scop import Statement
from kernelgen.poly.model.statement_pairs import by_statement
from kernelgen.poly.schedule.tree import Member, Node

Follows = tuple[tuple[Statement, str], ...]
"""For each statement the iterator that it follows a member along; others do not move with it."""


def follows(member: Member, statements: Mapping[str, Statement]) -> Follows:
    """The statements whose time along the member depends on one iterator, and that iterator."""
    pairs: list[tuple[Statement, str]] = []
    found = member.time.get_pw_aff_list()
    for k in range(found.n_pw_aff()):
        piece = found.get_at(k)
        statement = statements[piece.get_tuple_id(isl.dim_type.in_).get_name()]
        used = [d for d in range(len(statement.iterators)) if piece.involves_dims(isl.dim_type.in_, d, 1)]
        pairs += [(statement, statement.iterators[used[0]].name)] if len(used) == 1 else []
    return tuple(pairs)


def only_reductions_cross(member: Member, band: Node, whole: Relations) -> bool:
    """No flow dependence between instances that the loops around the band run together crosses the member.

    ``{ s -> t in flow : prefix(s) = prefix(t) }`` is inside of ``{ s -> t : time(s) = time(t) }``.
    """
    pairs = list(whole.flow_pairs.inside(band.get_domain()))
    if not pairs:
        return True
    around = by_statement(band.get_prefix_schedule_union_map())
    time = by_statement(isl.UnionMap.from_union_pw_aff(member.time))
    for pair in pairs:
        together, same = (at[pair.source].apply_range(at[pair.target].reverse()) for at in (around, time))
        if not pair.relation.intersect(together).is_subset(same):
            return False
    return True
