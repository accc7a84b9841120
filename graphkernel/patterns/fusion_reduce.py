"""Reductions: what they read, what reads them, and several of them in one kernel.

A kernel holds several reductions when they run over the same space (:mod:`graphkernel.cluster.iteration_space`): a softmax, a
layer norm or a cross entropy by rows is one kernel. Sums over rows and over columns of one tensor (the gradient of a layer
norm) share it too, last of all: they share no loop, but what lies between them is not stored for the second.
``reduce_fwd_*``, ``reduce_output`` and ``reduce_stitch`` are MindSpore's (the last two of its GPU model); the others go
beyond its CPU model, which ends a kernel at its first reduction. ``ElemAny``, the test whether any element is set, takes what
it tests: ``elemany_addn`` is of MindSpore's DVM model and ``elemwise_elemany`` of its GPU model.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, Link, fusion
from graphkernel.cluster.cost import is_greater
from graphkernel.cluster.iteration_space import Space
from graphkernel.cluster.split_models import Limits
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.status import ELEM_ANY
from kernelgen.tensor.types import Dim


@fusion(Direction.FORWARD, kinds=(Kind.REDUCE,))
def reduce_fwd_depth(area: Area, limits: Limits) -> Iterable[Area]:
    """The only producer of what is reduced, when nobody else needs it."""
    if area.kind is not Kind.REDUCE or len(area.inputs) != 1:
        return ()
    (link,) = area.inputs
    return (link.area,) if link.area.has_one_user and _feeds(link, limits) else ()


@fusion(Direction.FORWARD, kinds=(Kind.REDUCE,))
def reduce_fwd_width(area: Area, limits: Limits) -> Iterable[Area]:
    """Every element-wise producer of what is reduced."""
    if area.kind is not Kind.REDUCE:
        return ()
    return [link.area for link in area.inputs if _feeds(link, limits)]


def _feeds(link: Link, limits: Limits) -> bool:
    return link.area.kind <= Kind.BROADCAST and link.is_injective and link.area.size <= limits.reduce_fuse_depth


@fusion(Direction.BACKWARD, kinds=(Kind.REDUCE,))
def reduce_bwd(area: Area, limits: Limits) -> Iterable[Area]:
    """Users of a reduction that work on its result, or on the points that were reduced."""
    if area.kind is not Kind.REDUCE or area.space is None:
        return ()
    return [link.area for link in area.users if link.area.kind <= Kind.BROADCAST and _follows(area, link)]


def _follows(area: Area, link: Link) -> bool:
    space = area.space
    return space is not None and link.spreads <= {space} and link.area.elements in (space.total, space.kept)


@fusion(Direction.FORWARD, kinds=(Kind.REDUCE,))
def reduce_chain(area: Area, limits: Limits) -> Iterable[Area]:
    """Reductions over the same space whose results it needs."""
    if area.kind is not Kind.REDUCE or area.space is None:
        return ()
    return [link.area for link in area.inputs if _same_space(area, link.area) and link.spreads <= area.spaces]


@fusion(Direction.FORWARD, kinds=(Kind.REDUCE,))
def reduce_sibling(area: Area, limits: Limits) -> Iterable[Area]:
    """What reads the same tensor, which is then read once: reductions over the same space, pointwise areas over its points."""
    if area.kind is not Kind.REDUCE or area.space is None:
        return ()
    points = area.space.total
    return [other for other in area.siblings if _same_space(area, other) or _is_over(other, points)]


def _is_over(area: Area, points: Dim) -> bool:
    return Kind.RESHAPE < area.kind < Kind.REDUCE and area.elements == points


@fusion(Direction.FORWARD, kinds=(Kind.REDUCE,))
def reduce_crossed(area: Area, limits: Limits) -> Iterable[Area]:
    """Reductions over other dims of the same points, which make what it reduces or read what it reads."""
    if area.kind is not Kind.REDUCE:
        return ()
    makers = [link.area for link in area.inputs if link.is_injective and _same_points(area, link.area)]
    return makers or [other for other in area.siblings if _same_points(area, other)][:1]


def _same_points(area: Area, other: Area) -> bool:
    """True when all reductions of both run over the same points and leave some: a sum of all is faster alone."""
    spaces = sorted(area.spaces | other.spaces, key=str)
    leaves_some = all(space.kept != 1 for space in spaces)
    return other.kind is Kind.REDUCE and leaves_some and all(space.crosses(spaces[0]) for space in spaces)


@fusion(Direction.BACKWARD, kinds=(Kind.REDUCE,))
def reduce_output(area: Area, limits: Limits) -> Iterable[Area]:
    """Pointwise users of a single reduction, when few elements go into each result."""
    reductions = [node for node in area.nodes if node.op.kind is Kind.REDUCE]
    if area.kind is not Kind.REDUCE or len(reductions) != 1:
        return ()
    if area.elements == 1 and is_greater(reductions[0].args[0].type.size, limits.stitch_elements):
        return ()
    return [link.area for link in area.users if link.area.kind <= Kind.BROADCAST and _follows(area, link)]


@fusion(Direction.BACKWARD, kinds=(Kind.REDUCE,))
def reduce_stitch(area: Area, limits: Limits) -> Iterable[Area]:
    """Users that have only the rows in common with a large reduction: its results wait for them in the block's memory."""
    space = area.space
    if area.kind is not Kind.REDUCE or space is None or not space.is_rowwise or area.elements == 1:
        return ()
    if not is_greater(space.total, limits.stitch_elements - 1):
        return ()
    return [link.area for link in area.users if link.area.kind <= Kind.REDUCE and _has_rows(link, space)]


def _has_rows(link: Link, space: Space) -> bool:
    """True when the user spreads results, and reduces if at all, along the same rows."""
    spaces = link.spreads | link.area.spaces
    return len(link.area.spaces) < 2 and all(s.is_rowwise and s.kept == space.kept for s in spaces)


def _same_space(area: Area, other: Area) -> bool:
    return other.kind is Kind.REDUCE and other.spaces == area.spaces


@fusion(Direction.FORWARD, ops=(ELEM_ANY,))
def elemany_addn(area: Area, limits: Limits) -> Iterable[Area]:
    """Pointwise areas, broadcasts among them, that make what is tested."""
    return _makers_of_test(area, Kind.BROADCAST)


@fusion(Direction.FORWARD, ops=(ELEM_ANY,))
def elemwise_elemany(area: Area, limits: Limits) -> Iterable[Area]:
    """Element-wise areas that make what is tested."""
    return _makers_of_test(area, Kind.ELEMWISE)


def _makers_of_test(area: Area, greatest: Kind) -> list[Area]:
    if all(node.op is not ELEM_ANY for node in area.opaque):
        return []
    return [link.area for link in area.inputs if link.area.kind <= greatest and link.is_injective]
