"""One name for one meaning, so that later passes and rules meet few operators.

Before and after::

    a: f32[8, 1] = ExpandDims(x) {axis=1}             a: f32[8, 1] = Reshape(x)
    b: f32[8, 1] = Div(a, p)                    ->    b: f32[8, 1] = RealDiv(a, p)
    c: f32[8, 4] = Tile(b) {multiples=[1, 4]}         c: f32[8, 4] = BroadcastTo(b)

What an attribute of these operators says, their result says too; old writers leave the attribute wrong or away, so the
result is believed. A BroadcastTo that repeats nothing is a Reshape. Source: AKG's renaming of operators before lowering.
"""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.vocabulary import VIEWS
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape, product
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic

REPEATED = frozenset({basic.RESHAPE, basic.BROADCAST_TO, basic.CAST})
"""Operators whose attributes only repeat the shape or data type of the result."""


def canonical_names(desc: KernelDesc) -> KernelDesc:
    """The description in which every operator has its first name, and no attribute that its result makes redundant."""
    walk = Rewriting(desc)
    for node in desc.operators:
        op = _canonical(node)
        walk.keep(node, op=op, attrs=Attrs() if op in REPEATED else None)
    return walk.done()


def _canonical(node: Node) -> Operator:
    if node.op in VIEWS:
        return basic.RESHAPE
    if (
        node.op in (basic.BROADCAST_TO, basic.TILE)
        and node.args[0].constant is None
        and _repeats_ones(node.args[0].shape, node.outs[0].shape)
    ):
        kept = product(node.args[0].shape) == product(node.outs[0].shape)
        return basic.RESHAPE if kept else basic.BROADCAST_TO
    if node.op is basic.DIV and all(value.dtype.is_float for value in node.args):
        return basic.REAL_DIV
    return node.op


def _repeats_ones(source: Shape, result: Shape) -> bool:
    """Whether only extents of 1 grow."""
    pairs = zip(reversed(source), reversed(result), strict=False)
    return len(source) <= len(result) and all(s in (r, 1) for s, r in pairs)
