"""Reductions: what they read, what reads them, and several of them in one kernel.

A kernel holds several reductions when they run over the same space (:mod:`graphkernel.cluster.space`): a softmax, a
layer norm or a cross entropy by rows is one kernel, while sums over rows and over columns of one tensor stay two.
``reduce_fwd_*`` are MindSpore's; the others go beyond its CPU model, which ends a kernel at its first reduction.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, Link, fusion
from graphkernel.cluster.model import Limits
from graphkernel.ir.opdef import Kind


@fusion(Direction.FORWARD)
def reduce_fwd_depth(area: Area, limits: Limits) -> Iterable[Area]:
    """The only producer of what is reduced, when nobody else needs it."""
    if area.kind is not Kind.REDUCE or len(area.inputs) != 1:
        return ()
    (link,) = area.inputs
    return (link.area,) if link.area.has_one_user and _feeds(link, limits) else ()


@fusion(Direction.FORWARD)
def reduce_fwd_width(area: Area, limits: Limits) -> Iterable[Area]:
    """Every element-wise producer of what is reduced."""
    if area.kind is not Kind.REDUCE:
        return ()
    return [link.area for link in area.inputs if _feeds(link, limits)]


def _feeds(link: Link, limits: Limits) -> bool:
    return link.area.kind <= Kind.BROADCAST and link.is_injective and link.area.size <= limits.reduce_fuse_depth


@fusion(Direction.BACKWARD)
def reduce_bwd(area: Area, limits: Limits) -> Iterable[Area]:
    """Users of a reduction that work on its result, or on the points that were reduced."""
    if area.kind is not Kind.REDUCE or area.space is None:
        return ()
    return [link.area for link in area.users if link.area.kind <= Kind.BROADCAST and _follows(area, link)]


def _follows(area: Area, link: Link) -> bool:
    space = area.space
    return space is not None and link.spreads <= {space} and link.area.elements in (space.total, space.kept)


@fusion(Direction.FORWARD)
def reduce_chain(area: Area, limits: Limits) -> Iterable[Area]:
    """Reductions over the same space whose results it needs."""
    if area.kind is not Kind.REDUCE or area.space is None:
        return ()
    return [link.area for link in area.inputs if _same_space(area, link.area) and link.spreads <= area.spaces]


@fusion(Direction.FORWARD)
def reduce_sibling(area: Area, limits: Limits) -> Iterable[Area]:
    """Reductions over the same space that read the same tensor: it is read once."""
    if area.kind is not Kind.REDUCE or area.space is None:
        return ()
    return [other for other in area.siblings if _same_space(area, other)]


def _same_space(area: Area, other: Area) -> bool:
    return other.kind is Kind.REDUCE and other.spaces == area.spaces
