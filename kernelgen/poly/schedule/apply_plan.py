"""Applies a plan to a schedule: members of bands become loops of their own, tiled and marked, piece by piece.

    band [i, j], plan "parallel 1 by 2048; 0; vector 1"   ->   parallel j by 2048; i; vector j

Whether the result is legal is not asked here: the proof looks at the finished tree. A plan that does not fit the tree is
an ArgumentError that names the band.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl

from kernelgen.errors import ArgumentError
from kernelgen.nest.marks import VECTOR
from kernelgen.plan import BandPlan, LoopPlan, PiecePlan
from kernelgen.poly.schedule.tree import (
    Loop,
    Member,
    Node,
    bands,
    edit_nodes,
    has_band_below,
    is_band,
    members,
    replace_band,
    split_band,
    statement_names,
    tiled,
)

ANEW = "a plan with bands and code null has them chosen"
"""What to do with a plan that was made for another schedule, by an earlier version perhaps."""


def apply(schedule: isl.Schedule, plans: Sequence[BandPlan]) -> isl.Schedule:
    """The schedule with every band as its plan says. Raises ArgumentError for a plan that does not fit."""
    found = sum(1 for _ in bands(schedule.get_root()))
    if found != len(plans):
        raise ArgumentError(f"the plan has {len(plans)} bands, the schedule has {found}; {ANEW}")
    numbered = iter(enumerate(plans))

    def edit(band: Node) -> Node:
        number, plan = next(numbered)
        _check_fit(f"band {number}", band, plan)
        return _applied(band, plan)

    return edit_nodes(schedule, is_band, edit)


def _applied(band: Node, plan: BandPlan) -> Node:
    found = members(band)
    if len(plan.pieces) == 1:
        return replace_band(band, _loops(plan.pieces[0], found))
    parts = zip(_domains(band, plan.pieces, found), plan.pieces, strict=True)
    return split_band(band, [(domain, _loops(piece, found)) for domain, piece in parts])


def _loops(piece: PiecePlan, found: list[Member]) -> list[Loop]:
    """The loops of a piece over members of a band."""
    pairs = [(found[loop.member], loop) for loop in piece.loops]
    return [Loop(tiled(m, loop.tile) if loop.tile else m, loop.mark, loop.unroll) for m, loop in pairs]


def _domains(band: Node, pieces: Sequence[PiecePlan], found: list[Member]) -> Iterator[isl.UnionSet]:
    """``W[k] - (W[0] + ... + W[k-1])``, where ``W[k]`` are the instances in all whole tiles of piece ``k``.

    Tiles of fewer members hold more: what is taken already need not be taken away again from them.
    """
    domain = band.get_domain()
    taken: list[tuple[PiecePlan, isl.UnionSet]] = []
    for piece in pieces:
        whole = domain
        for tiles in piece.whole:
            whole = whole.intersect(_whole_tiles(found[tiles.member], domain, tiles.size))
        rest = whole
        for _, earlier in taken:
            rest = rest.subtract(earlier)
        yield rest
        taken = [(other, held) for other, held in taken if not set(piece.whole) <= set(other.whole)] + [(piece, whole)]


def _whole_tiles(member: Member, domain: isl.UnionSet, size: int) -> isl.UnionSet:
    """``{ S[i] : time(S[i]) < size * floor(end / size) }``, where loops run from 0 to ``end``.

    The bound is a number over the parameters: so what is left is a loop from there on, without guards.
    """
    context = domain.get_ctx()
    time = isl.UnionMap.from_union_pw_aff(member.time).intersect_domain(domain)
    last = isl.Set.from_union_set(time.range()).dim_max(0)
    tiles = last.add_constant_val(isl.Val(1, context)).scale_down_val(isl.Val(size, context)).floor()
    end = isl.Set.from_pw_aff(tiles.scale_val(isl.Val(size, context)))
    before = isl.Map.read_from_str(context, "{ [t] -> [end] : t < end }").intersect_range(end).domain()
    return time.intersect_range(isl.UnionSet.from_set(before)).domain()


def _check_fit(name: str, band: Node, plan: BandPlan) -> None:
    statements, count = statement_names(band), band.band_n_member()
    if (statements, count) != (plan.statements, len(plan.members)):
        raise ArgumentError(
            f"{name} of the schedule has {count} members over {', '.join(statements)}; "
            f"the plan has {len(plan.members)} over {', '.join(plan.statements)}; {ANEW}"
        )
    if not plan.pieces or plan.pieces[-1].whole:
        raise ArgumentError(f"{name}: the last piece must take the rest, without whole tiles")
    is_leaf = not has_band_below(band)
    for number, piece in enumerate(plan.pieces):
        where = f"{name}, piece {number}"
        _check_sizes(where, piece, count)
        _check_loops(where, piece.loops, count, is_leaf)


def _check_sizes(where: str, piece: PiecePlan, count: int) -> None:
    for tiles in piece.whole:
        if not 0 <= tiles.member < count or tiles.size < 1:
            raise ArgumentError(f"{where}: whole tiles of {tiles.size} of member {tiles.member} of {count}")
    for loop in piece.loops:
        if not 0 <= loop.member < count:
            raise ArgumentError(f"{where}: there is no member {loop.member}; members are 0 to {count - 1}")
        if loop.tile is not None and loop.tile < 1:
            raise ArgumentError(f"{where}: a tile of {loop.tile}")


def _check_loops(where: str, loops: Sequence[LoopPlan], count: int, is_leaf: bool) -> None:
    """Every member is a loop once (without it instances have no order), and vector loops are innermost."""
    points = sorted(loop.member for loop in loops if loop.tile is None)
    if points != list(range(count)):
        raise ArgumentError(f"{where}: loops over members {points}; each of 0 to {count - 1} must be a loop once")
    for position, loop in enumerate(loops):
        inside = loops[position + 1 :]
        if loop.mark == VECTOR and not (is_leaf and all(inner.unroll for inner in inside)):
            raise ArgumentError(f"{where}: the vector loop over member {loop.member} has a loop inside")
