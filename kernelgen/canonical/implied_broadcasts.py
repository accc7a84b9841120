"""Drops a BroadcastTo whose reader broadcasts by itself, and a Reshape that only puts ones in front.

Before and after::

    b: f32[8, 4] = BroadcastTo(p)
    y: f32[8, 4] = Sub(x, b)              ->      y: f32[8, 4] = Sub(x, p)

where ``p`` is ``f32[4]`` and ``x`` is ``f32[8, 4]``. An element-wise operator does so when its other operands alone have
the shape of its result. Source: the inverse of MindSpore's explicit broadcasts, which AKG's inputs are full of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernelgen.canonical.dead_code import drop_dead
from kernelgen.canonical.rewrite import operands_replaced, updated_names, with_ops
from kernelgen.composite.axes import broadcast
from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE


def imply_broadcasts(desc: KernelDesc) -> KernelDesc:
    """The description in which element-wise operators read the operands of broadcasts, where shapes allow it."""
    updated = updated_names(desc)
    sources: dict[str, TensorDesc] = {}
    ops: list[OpDesc] = []
    for op in desc.ops:
        op = operands_replaced(op, sources) if op.name == BROADCAST_TO.name else _narrowed(op, sources)
        ops.append(op)
        if _is_implied(op) and op.inputs[0].name not in updated:
            sources[op.output.name] = op.inputs[0]
    return drop_dead(with_ops(desc, ops))


def _is_implied(op: OpDesc) -> bool:
    """Whether broadcasting, which pairs dims from the last to the first, does what the operator does."""
    if op.name not in (BROADCAST_TO.name, RESHAPE.name):
        return False
    source, result = op.inputs[0].shape, op.output.shape
    more = len(result) - len(source)
    if op.name == BROADCAST_TO.name:
        return more >= 0
    return more > 0 and result == (1,) * more + source


def _narrowed(op: OpDesc, sources: Mapping[str, TensorDesc]) -> OpDesc:
    """The operator on narrower operands where the others still have the shape of the result."""
    if scalar_rule(op) is None or not any(t.value is None and t.name in sources for t in op.inputs):
        return op
    inputs = list(op.inputs)
    for place in range(len(inputs)):
        while inputs[place].value is None and (narrow := sources.get(inputs[place].name)):
            others = (t.shape for k, t in enumerate(inputs) if k != place)
            if broadcast(narrow.shape, *others) != op.output.shape:
                break
            inputs[place] = narrow
    return op if tuple(inputs) == op.inputs else replace(op, inputs=tuple(inputs))
