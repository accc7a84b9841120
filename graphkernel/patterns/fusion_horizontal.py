"""Areas side by side: neither needs the other, but they read the same tensor, which one kernel reads once.

Source: ``h_broadcast``, ``h_reduce`` and ``h_opaque`` of MindSpore's GPU model, behind ``enable_horizontal_fusion``;
``elemwise_sibling`` is ours and needs no flag, since it stops at few results.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from graphkernel.cluster.area import Area, Direction, fusion
from graphkernel.cluster.split_models import Limits
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.pieces import STRIDED_SLICE

POINTWISE = (Kind.ELEMWISE, Kind.BROADCAST)


@fusion(Direction.FORWARD, kinds=POINTWISE)
def elemwise_sibling(area: Area, limits: Limits) -> Iterable[Area]:
    """The next pointwise area over as many elements that reads the same tensor, while the kernel has few results."""
    if area.kind not in POINTWISE:
        return ()
    alike = [other for other in area.siblings if other.kind in POINTWISE and other.elements == area.elements]
    room = limits.sibling_outputs - len(area.outputs) if alike else 0
    fitting = (other for other in alike if len(other.outputs) <= room)
    return islice(fitting if room > 0 else (), 1)


@fusion(Direction.FORWARD, kinds=POINTWISE)
def h_broadcast(area: Area, limits: Limits) -> Iterable[Area]:
    """Pointwise areas with results of the same shape."""
    if area.kind not in POINTWISE:
        return ()
    shape = area.nodes[-1].types[0].shape
    return _beside(
        area, limits, [a for a in area.siblings if a.kind in POINTWISE and a.nodes[-1].types[0].shape == shape]
    )


@fusion(Direction.FORWARD, kinds=(Kind.REDUCE,))
def h_reduce(area: Area, limits: Limits) -> Iterable[Area]:
    """Reductions over the same space."""
    if area.kind is not Kind.REDUCE or area.space is None:
        return ()
    return _beside(area, limits, [a for a in area.siblings if a.kind is Kind.REDUCE and a.spaces == area.spaces])


@fusion(Direction.FORWARD, ops=(STRIDED_SLICE,))
def h_opaque(area: Area, limits: Limits) -> Iterable[Area]:
    """Slices of operands of the same shape with results of the same shape."""
    node = area.lone(STRIDED_SLICE)
    if node is None:
        return ()
    shapes = node.args[0].type.shape, node.types[0].shape
    slices = ((a, a.lone(STRIDED_SLICE)) for a in area.siblings)
    alike = [a for a, other in slices if other and (other.args[0].type.shape, other.types[0].shape) == shapes]
    return _beside(area, limits, alike)


def _beside(area: Area, limits: Limits, found: Iterable[Area]) -> list[Area]:
    """The first that leaves the kernel within the limit of horizontal fusion."""
    return [other for other in found if area.size + other.size <= limits.horizontal_size][:1]
