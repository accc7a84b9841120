"""Stencils in one kernel: shifted parts of operands, what makes these, and what puts the parts together.

    h = x[:, :-2] + x[:, 1:-1] + x[:, 2:];  e = h * h;  y = e[:-2] + e[1:-1] + e[2:]        one kernel: 16 rows of y, 18 of e

A kernel runs the statements of a chain over tiles of rows (:mod:`kernelgen.poly.grouping.overlapped_tiles`), so that what they
hand on never leaves a cache, although many read it, each at a place of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, fusion
from graphkernel.cluster.split_models import Limits
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.pieces import STRIDED_SLICE


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=(STRIDED_SLICE,))
def stencil(area: Area, limits: Limits) -> Iterable[Area]:
    """What makes the operands of shifted parts, however many need it, what puts them together, and further stencils."""
    if not area.opaque or not _fits(area):
        return ()
    return [link.area for link in (*area.inputs, *area.users) if _fits(link.area)]


def _fits(area: Area) -> bool:
    """Whether all that it does is pointwise or shifts."""
    return all(node.op.kind <= Kind.BROADCAST or is_shift(node) for node in area.nodes)


def is_shift(node: Node) -> bool:
    """Whether it is more than half of each axis, from another place on: ``x[1:-1]``, ``x[::2]``.

    Two of them have elements in common, so a kernel reads these once. Smaller ones are pieces, which are cut out.
    """
    if node.op is not STRIDED_SLICE:
        return False
    strides = node.attrs.ints("strides", (1,) * node.out.type.rank)
    extents = zip(node.out.type.shape, strides, node.args[0].type.shape, strict=True)
    return all(
        isinstance(out, int) and isinstance(of, int) and step > 0 and 2 * out * step > of for out, step, of in extents
    )
