"""Editing schedule trees: bands taken apart into members and put together again, with marks.

isl nodes are values: every edit returns the node at the same place in a new tree. islpy never frees its handle of an argument
that a call consumes, 32 bytes. So what happens often is written with calls that only look: down by ``get_child``, up by
``get_schedule`` and from the root again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from kernelgen.nest.marks import UNMARKED, Mark
from kernelgen.poly.schedule.marks import insert_mark

Node = isl.ScheduleNode
BAND = isl.schedule_node_type.band


@dataclass(frozen=True)
class Member:
    """One dim of a band: ``time`` maps instances to a number, ``coincident`` promises that no dependence crosses it."""

    time: isl.UnionPwAff
    coincident: bool


def is_band(node: Node) -> bool:
    """Whether the node is a band with at least one member."""
    return node.get_type() == BAND and node.band_n_member() > 0


def members(band: Node) -> list[Member]:
    """The members of a band, outermost first."""
    partial = band.band_get_partial_schedule()
    return [Member(partial.get_at(k), bool(band.band_member_get_coincident(k))) for k in range(band.band_n_member())]


@dataclass(frozen=True)
class Loop:
    """A member that shall become a loop of its own, with a mark for code generation or none; or be unrolled away."""

    member: Member
    mark: Mark = UNMARKED
    unroll: bool = False


def replace_band(band: Node, loops: Sequence[Loop]) -> Node:
    """The band replaced by single-member bands, outermost first, each below its mark; the node is the outermost one."""
    return insert_loops(band.delete(), loops)


def split_band(band: Node, pieces: Sequence[tuple[isl.UnionSet, Sequence[Loop]]]) -> Node:
    """The band replaced by a sequence: loops of their own for each piece of its domain. Empty pieces are left out."""
    parts = [(piece, loops) for piece, loops in pieces if not piece.is_empty()]
    if len(parts) == 1:
        return replace_band(band, parts[0][1])
    filters = isl.UnionSetList.alloc(band.get_ctx(), len(parts))
    for piece, _ in parts:
        filters = filters.add(piece)
    node = band.delete().insert_sequence(filters)
    for k, (_, loops) in enumerate(parts):
        node = insert_loops(node.get_child(k).get_child(0), loops).ancestor(2)
    return node


def insert_loops(node: Node, loops: Sequence[Loop]) -> Node:
    """Loops around a node, outermost first."""
    for loop in reversed(loops):
        node = node.insert_partial_schedule(isl.MultiUnionPwAff.from_union_pw_aff(loop.member.time))
        node = node.band_set_permutable(1).band_member_set_coincident(0, int(loop.member.coincident))
        if loop.unroll:
            node = node.band_member_set_ast_loop_type(0, isl.ast_loop_type.unroll)
        if loop.mark != UNMARKED:
            node = insert_mark(node, loop.mark)
    return node


def tiled(member: Member, size: int) -> Member:
    """``{ S[i] -> size * floor(time / size) }``: the first point of the tile."""
    value = isl.Val(size, context=member.time.get_ctx())
    return Member(member.time.scale_down_val(value).floor().scale_val(value), member.coincident)


def edit_nodes(schedule: isl.Schedule, wanted: Callable[[Node], bool], edit: Callable[[Node], Node]) -> isl.Schedule:
    """Applies ``edit`` to every ``wanted`` node of the ``schedule``, innermost first, so that what it does below one
    moves no other.
    """
    for path in [path for path, node in _innermost_first(schedule.get_root(), ()) if wanted(node)]:
        node = schedule.get_root()
        for position in path:
            node = node.get_child(position)
        schedule = edit(node).get_schedule()
    return schedule


def _innermost_first(node: Node, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Node]]:
    for k in range(node.n_children()):
        yield from _innermost_first(node.get_child(k), (*path, k))
    yield path, node


def bands(node: Node, outermost: bool = True) -> Iterator[tuple[Node, bool]]:
    """Every band and whether it is outermost, innermost first."""
    below = outermost and not is_band(node)
    for k in range(node.n_children()):
        yield from bands(node.get_child(k), below)
    if is_band(node):
        yield node, outermost


def statement_names(band: Node) -> tuple[str, ...]:
    """The statements with instances in a band, sorted."""
    sets = band.get_domain().get_set_list()
    return tuple(sorted({sets.get_at(k).get_tuple_name() for k in range(sets.n_set())}))


def descendants(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for k in range(node.n_children()):
        yield from descendants(node.get_child(k))


def has_band_below(band: Node) -> bool:
    """Whether another band lies below."""
    return any(is_band(node) for k in range(band.n_children()) for node in descendants(band.get_child(k)))
