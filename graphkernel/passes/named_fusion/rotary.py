"""The pass rotary_position_embedding: halves turned against each other, as transformers tell positions, are one operator.

Before and after::

    a = StridedSlice(x, 0..4); b = StridedSlice(x, 4..8)        y = RotaryPositionEmbedding(x, cos, sin, mode=0)
    r = Concat(Neg(b), a)                                  ==>
    y = Add(Mul(x, cos), Mul(r, sin))
"""

from __future__ import annotations

from collections.abc import Iterator

from graphkernel.expanders.base import Declined
from graphkernel.ops.composite.split_sizes import SPLIT_WITH_SIZE
from graphkernel.ops.fused.fused_transformer import ROTARY_POSITION_EMBEDDING
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Site, named_fusion, product
from graphkernel.passes.named_fusion.queries import both_orders, made_by
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.elemwise import ADD, MUL, NEG
from kernelgen.tensor.operators.pieces import CONCAT, SLICE, SPLIT, STRIDED_SLICE


@named_fusion("rotary_position_embedding")
def rotary_position_embedding(site: Site) -> Fusion | Declined | None:
    """x * cos + concat(-b, a) * sin, a and b the halves of the last axis of x, as RotaryPositionEmbedding."""
    for x, cos, turned, sin, products in _readings(site.root):
        concat = made_by(turned, CONCAT)
        halves = _turned_halves(concat, x) if concat is not None else None
        if concat is not None and halves is not None:
            operands = (x, cos, sin)
            nodes = (*halves, concat, *products, site.root)
            return Fusion(nodes, operands, site.root.outs, product(ROTARY_POSITION_EMBEDDING, mode=0))
    return None


def _readings(root: Node) -> Iterator[tuple[Value, Value, Value, Value, tuple[Node, Node]]]:
    """The ways to read a node as ``x * cos + turned * sin``."""
    for left, right in both_orders(root) if root.op is ADD else ():
        straight, across = made_by(left, MUL), made_by(right, MUL)
        if straight is None or across is None:
            continue
        for x, cos in both_orders(straight):
            yield from ((x, cos, turned, sin, (straight, across)) for turned, sin in both_orders(across))


def _turned_halves(concat: Node, x: Value) -> tuple[Node, ...] | None:
    """The nodes between x and ``concat(-b, a)``; None when it is anything else."""
    last = x.type.rank - 1
    if len(concat.args) != 2 or concat.attrs.int("axis") % x.type.rank != last:
        return None
    negated, first = made_by(concat.args[0], NEG), concat.args[1]
    second = negated.args[0] if negated is not None else None
    if negated is None or second is None or not (is_half(first, x, 0) and is_half(second, x, 1)):
        return None
    return (*dict.fromkeys((first.node, second.node)), negated)


def is_half(value: Value, x: Value, which: int) -> bool:
    """True when a ``value`` is the first (``which`` 0) or second (1) half of the last axis of ``x``."""
    node, whole = value.node, x.type.shape[-1]
    if not node.args or node.args[0] != x or not isinstance(whole, int) or whole % 2:
        return False
    if value.type.shape != (*x.type.shape[:-1], whole // 2):
        return False
    if node.op in (SPLIT, SPLIT_WITH_SIZE):
        return node.attrs.int("axis", 0) % x.type.rank == x.type.rank - 1 and value.index == which
    if node.op is STRIDED_SLICE:
        steps, begin = node.attrs.ints("strides"), node.attrs.dims("begin")
        plain = set(node.attrs) <= {"begin", "end", "strides"} and all(step == 1 for step in steps)
        return plain and begin[-1] == which * (whole // 2)
    return node.op is SLICE and node.attrs.dims("begin")[-1] == which * (whole // 2)
