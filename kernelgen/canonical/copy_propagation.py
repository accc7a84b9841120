"""Readers of a copy read the original.

Before and after::

    a: f32[8] = TensorMove(x)
    b: f32[8] = Reshape(a)
    c: f32[8] = Exp(b)                    ->      c: f32[8] = Exp(x)

Copies are TensorMove, Cast to the same data type, Reshape and BroadcastTo to the same shape, and results of in-place
operators. A Reshape of a Reshape starts from the first operand. A copy of an input that the kernel updates stays: it holds
the old content. Source: copy propagation.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.canonical.dead_code import drop_dead
from kernelgen.canonical.rewrite import operands_replaced, updated_names, with_ops
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.vocabulary import names_of
from kernelgen.tensor.operators import catalogue as basic

COPIES = names_of(basic.TENSOR_MOVE, basic.CAST, basic.RESHAPE, basic.BROADCAST_TO)


def propagate_copies(desc: KernelDesc) -> KernelDesc:
    """The description in which nobody reads a copy, less the copies that nobody reads then."""
    updated = updated_names(desc)
    originals: dict[str, TensorDesc] = {}
    reshaped: dict[str, TensorDesc] = {}
    ops: list[OpDesc] = []
    for op in desc.ops:
        op = operands_replaced(op, originals)
        if op.name == basic.RESHAPE.name:
            op = operands_replaced(op, reshaped)
        ops.append(op)
        source = copied(op)
        if source is not None and source.name not in updated:
            originals[op.output.name] = source
        elif op.name == basic.RESHAPE.name and op.inputs[0].value is None and op.inputs[0].name not in updated:
            reshaped[op.output.name] = op.inputs[0]
    return drop_dead(with_ops(desc, ops))


def copied(op: OpDesc) -> TensorDesc | None:
    """The named operand that the result equals in value, shape, data type and format, if any."""
    if op.name in IN_PLACE_OPS:
        source = op.inputs[-1]
    elif op.name in COPIES and len(op.inputs) == 1:
        source = op.inputs[0]
    else:
        return None
    same = replace(source, name=op.output.name) == op.output
    return source if same else None
