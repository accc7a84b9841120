"""Drops a BroadcastTo whose reader broadcasts by itself, and a Reshape that only puts ones in front.

Before and after::

    b: f32[8, 4] = BroadcastTo(p)
    y: f32[8, 4] = Sub(x, b)              ->      y: f32[8, 4] = Sub(x, p)

where ``p`` is ``f32[4]`` and ``x`` is ``f32[8, 4]``. An element-wise operator does so when its other operands alone have
the shape of its result. Source: the inverse of MindSpore's explicit broadcasts, which AKG's inputs are full of.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE
from kernelgen.tensor.operators.type_rules import broadcast_shapes


def imply_broadcasts(desc: KernelDesc) -> KernelDesc:
    """The description in which element-wise operators read the operands of broadcasts, where shapes allow it."""
    walk = Rewriting(desc)
    sources: dict[Value, Value] = {}
    for node in desc.operators:
        args = walk.args(node)
        if node.op is BROADCAST_TO:
            args = tuple(sources.get(value, value) for value in args)
        elif scalar_rule(node) is not None:
            args = _narrowed(node, args, sources)
        kept = walk.keep(node, args)
        if _is_implied(kept):
            sources[kept.out] = kept.args[0]
    return walk.done()


def _is_implied(node: Node) -> bool:
    """Whether broadcasting, which pairs dims from the last to the first, does what the operator does."""
    if node.op not in (BROADCAST_TO, RESHAPE):
        return False
    source, result = node.args[0].shape, node.out.shape
    more = len(result) - len(source)
    if node.op is BROADCAST_TO:
        return more >= 0
    return more > 0 and result == (1,) * more + source


def _narrowed(node: Node, args: tuple[Value, ...], sources: Mapping[Value, Value]) -> tuple[Value, ...]:
    """Narrower operands where the others still have the shape of the result."""
    narrowed = list(args)
    for place in range(len(narrowed)):
        while narrow := sources.get(narrowed[place]):
            others = (value.shape for k, value in enumerate(narrowed) if k != place)
            if broadcast_shapes((narrow.shape, *others)) != node.out.shape:
                break
            narrowed[place] = narrow
    return tuple(narrowed)
