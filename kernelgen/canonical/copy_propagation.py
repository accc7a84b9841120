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

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators import catalogue as basic

COPIES = frozenset({basic.TENSOR_MOVE, basic.CAST, basic.RESHAPE, basic.BROADCAST_TO})


def propagate_copies(desc: KernelDesc) -> KernelDesc:
    """The description in which nobody reads a copy, less the copies that nobody reads then."""
    walk = Rewriting(desc)
    originals: dict[Value, Value] = {}
    reshaped: dict[Value, Value] = {}
    for node in desc.operators:
        args = tuple(originals.get(value, value) for value in walk.args(node))
        if node.op is basic.RESHAPE:
            args = tuple(reshaped.get(value, value) for value in args)
        kept = walk.keep(node, args)
        source = copied(kept)
        if source is not None:
            originals[kept.out] = source
        elif kept.op is basic.RESHAPE and args[0].constant is None:
            reshaped[kept.out] = args[0]
    return walk.done()


def copied(node: Node) -> Value | None:
    """The operand that the result equals in value, shape, data type and layout, if any."""
    if node.op is basic.ASSIGN or (node.op in COPIES and len(node.args) == 1):
        source = node.args[-1]
        return source if source.constant is None and source.type == node.out.type else None
    return None
