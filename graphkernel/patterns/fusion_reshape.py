"""Operators that move or name elements without computing: reshapes, transposes, and bindings.

A reshape outside kernels is a view and costs nothing, so it joins a kernel only to connect areas; the engine refuses
when it would become a copy. Source: ``reshape``, ``isolate_reshape``, ``bind_virtual_node`` and the GPU model's
``transpose`` and ``injective_output`` of MindSpore.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, Link, Mode, fusion
from graphkernel.cluster.split_models import Limits
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.shape import TRANSPOSE


@fusion(Direction.FORWARD, kinds=(Kind.VIRTUAL,))
def bind_virtual_node(area: Area, limits: Limits) -> Iterable[Area]:
    """What an assignment stores."""
    return [link.area for link in area.inputs] if area.kind is Kind.VIRTUAL else ()


@fusion(Direction.BACKWARD, kinds=(Kind.RESHAPE,))
def reshape(area: Area, limits: Limits) -> Iterable[Area]:
    """The neighbour of the smallest kind up to BROADCAST, a user rather than a producer when they are equal."""
    if area.kind is not Kind.RESHAPE:
        return ()
    neighbours = [link.area for link in (*area.users, *area.inputs) if link.area.kind <= Kind.BROADCAST]
    return sorted(neighbours, key=lambda other: other.kind)[:1]


@fusion(Direction.BACKWARD, kinds=(Kind.RESHAPE,))
def isolate_reshape(area: Area, limits: Limits) -> Iterable[Area]:
    """The first kernel beside a reshape that is still alone, users first."""
    if area.kind is not Kind.RESHAPE or area.size != 1:
        return ()
    kernels = [link.area for link in (*area.users, *area.inputs) if link.area.mode is Mode.COMPOSITE]
    return kernels[:1]


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=(TRANSPOSE,))
def transpose(area: Area, limits: Limits) -> Iterable[Area]:
    """Element-wise neighbours of a transpose: its producer if nobody else needs it, and its users, transposing alike."""
    if not _is_transposing(area):
        return ()
    producers = [link.area for link in area.inputs if link.area.has_one_user and _is_short(link, limits)]
    users = [link.area for link in area.users if _is_short(link, limits) or _is_alike(area, link.area)]
    return [*producers, *users]


def _is_transposing(area: Area) -> bool:
    """True when all that is opaque in the area are transposes, and all of them alike."""
    found = area.opaque
    return bool(found) and all(node.op is TRANSPOSE and node.attrs == found[0].attrs for node in found)


def _is_alike(area: Area, other: Area) -> bool:
    return _is_transposing(other) and other.opaque[0].attrs == area.opaque[0].attrs


def _is_short(link: Link, limits: Limits) -> bool:
    return link.area.kind <= Kind.BROADCAST and link.is_injective and link.area.size <= limits.transpose_fuse_depth
