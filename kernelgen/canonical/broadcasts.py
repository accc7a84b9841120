"""Broadcasts are either what an element-wise operator does by itself, or a BroadcastTo: never something between.

Before and after::

    a: f32[8, 4] = Exp(p)                             a_0: f32[4] = Exp(p)
                                              ->      a: f32[8, 4] = BroadcastTo(a_0)

where ``p`` is ``f32[4]``. AKG lets operators broadcast to their result; everywhere else in the vocabulary a result has
the shape that its operands broadcast to. The operator runs once for each element of its operands.
Source: AKG's broadcast inserter.
"""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.tensor.dims import Shape, product
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.shape import BROADCAST_TO
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from kernelgen.tensor.types import TensorType


def write_out_broadcasts(desc: KernelDesc) -> KernelDesc:
    """The description in which element-wise results have the shape that their operands broadcast to, up to ones."""
    walk = Rewriting(desc, "narrow")
    for node in desc.operators:
        narrow = _narrow(node)
        if narrow is None:
            walk.keep(node)
            continue
        small = walk.make(node.op, walk.args(node), TensorType(narrow, node.out.dtype, node.out.layout), node.attrs)
        walk.becomes(node.out, walk.make(BROADCAST_TO, (small,), node.out.type, name=node.name))
    return walk.done()


def _narrow(node: Node) -> Shape | None:
    """The shape of an element-wise operator's operands where the result repeats their elements."""
    if scalar_rule(node) is None or all(value.constant is not None for value in node.args):
        return None
    shape = broadcast_shapes(value.shape for value in node.args)
    return shape if product(shape) != product(node.out.shape) and 0 not in node.out.shape else None
