"""Broadcasts are either what an element-wise operator does by itself, or a BroadcastTo: never something between.

Before and after::

    a: f32[8, 4] = Exp(p)                             a_0: f32[4] = Exp(p)
                                              ->      a: f32[8, 4] = BroadcastTo(a_0)

where ``p`` is ``f32[4]``. AKG lets operators broadcast to their result; everywhere else in the vocabulary a result has
the shape that its operands broadcast to. The operator runs once for each element of its operands.
Source: AKG's broadcast inserter.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.canonical.rewrite import fresh_names, with_ops
from kernelgen.composite.axes import broadcast
from kernelgen.composite.description import KernelDesc, OpDesc
from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape, product
from kernelgen.tensor.operators.shape import BROADCAST_TO


def write_out_broadcasts(desc: KernelDesc) -> KernelDesc:
    """The description in which element-wise results have the shape that their operands broadcast to, up to ones."""
    ops: list[OpDesc] = []
    names = fresh_names(desc, "narrow")
    for op in desc.ops:
        narrow = _narrow(op)
        if narrow is None:
            ops.append(op)
            continue
        small = replace(op.output, name=next(names), shape=narrow)
        ops += [replace(op, outputs=(small,)), OpDesc(BROADCAST_TO.name, (small,), op.outputs, Attrs())]
    return with_ops(desc, ops)


def _narrow(op: OpDesc) -> Shape | None:
    """The shape of an element-wise operator's operands where the result repeats their elements."""
    if scalar_rule(op) is None or not any(t.value is None for t in op.inputs):
        return None
    shape = broadcast(*(t.shape for t in op.inputs))
    return shape if product(shape) != product(op.output.shape) and 0 not in op.output.shape else None
