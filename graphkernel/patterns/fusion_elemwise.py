"""Element-wise and broadcast areas: along producers (forward) and into users (backward).

``depth`` follows a chain with one way in or out, ``width`` takes any number of neighbours.
Source: the patterns of the same names in MindSpore's split model.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, Link, fusion
from graphkernel.cluster.split_models import Limits
from kernelgen.tensor.operator import Kind

POINTWISE = (Kind.ELEMWISE, Kind.BROADCAST)


@fusion(Direction.FORWARD, kinds=POINTWISE)
def elemwise_broadcast_fwd_depth(area: Area, limits: Limits) -> Iterable[Area]:
    """The only producer, when nobody else needs it and it makes as many elements."""
    if area.kind not in POINTWISE or len(area.inputs) != 1:
        return ()
    (link,) = area.inputs
    return (link.area,) if link.area.has_one_user and _same_points(area, link) else ()


@fusion(Direction.FORWARD, kinds=POINTWISE)
def elemwise_broadcast_fwd_width(area: Area, limits: Limits) -> Iterable[Area]:
    """Every producer that makes as many elements."""
    if area.kind not in POINTWISE:
        return ()
    return [link.area for link in area.inputs if _same_points(area, link)]


def _same_points(area: Area, link: Link) -> bool:
    return link.area.kind <= Kind.BROADCAST and link.is_injective and link.area.elements == area.elements


@fusion(Direction.BACKWARD, kinds=POINTWISE)
def elemwise_broadcast_bwd_depth(area: Area, limits: Limits) -> Iterable[Area]:
    """The only user, when it has no other producer: the value may be broadcast or reduced there."""
    if not _may_move_into_users(area, limits) or len(area.users) != 1:
        return ()
    (link,) = area.users
    return (link.area,) if len(link.area.inputs) == 1 and _takes_in(link) else ()


@fusion(Direction.BACKWARD, whole=True, kinds=POINTWISE)
def elemwise_broadcast_bwd_width(area: Area, limits: Limits) -> Iterable[Area]:
    """All users, when all can take it in, make equally many elements and reduce over the same space if at all."""
    users = area.users
    if not _may_move_into_users(area, limits) or not all(map(_takes_in, users)):
        return ()
    spaces = {link.area.spaces for link in users if link.area.kind is Kind.REDUCE}
    alike = len({link.area.elements for link in users}) == 1 and len(spaces) <= 1
    return [link.area for link in users] if alike else ()


def _may_move_into_users(area: Area, limits: Limits) -> bool:
    return area.kind in POINTWISE and not area.is_output and area.size <= limits.backward_fuse_depth


def _takes_in(link: Link) -> bool:
    return link.area.kind <= Kind.REDUCE
