"""The pass quantized_between: what is quantized and read as numbers again between operators of kernels is rounded there.

Before and after::

    q = QuantizeLinear(x, s, z)             ==>    r = Round(RealDiv(x, s))
    y = DequantizeLinear(q, s, z)                  y = Mul(Minimum(Maximum(r, low - z), high - z), s)

A quantized model says at every edge to which numbers values are rounded. Beside a convolution or a product the library computes
on the integers. Between two operators of kernels nobody wants them, and the pair by itself was a call of the library.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.cluster import can_join
from graphkernel.passes.named_fusion.written_quant import is_onnx, zero_point
from kernelgen.tensor.graph import LEAVES, Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.elemwise import MAXIMUM, MINIMUM, MUL, REAL_DIV, ROUND

FLOAT = "float32"
LIBRARY_STEPS = 3
"""A bias, one more tensor and an activation, which the library computes on integers behind a product."""

INTEGERS = frozenset({"int8", "uint8", "int16", "uint16"})


class Steps(NamedTuple):
    """The numbers that values are rounded to: multiples of ``scale`` from ``low`` to ``high`` times it."""

    scale: np.float32
    low: float
    high: float


@graph_pass
def quantized_between(graph: Graph, context: Context) -> Graph:
    """QuantizeLinear and DequantizeLinear by one constant scale, between operators that kernels hold, become arithmetic."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        steps = _steps(node)
        if steps is None or not _is_between_kernels(graph, node, context.options):
            return keep(node, args).outs
        context.log.add(quantized_between.name, "idiom-recognised", node.name, message="rounded in a kernel")
        return (rounded(args[0].node.args[0], steps, Builder(origin=node.name)),)

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)


def rounded(x: Value, steps: Steps, builder: Builder) -> Value:
    """The nearest of the steps, as onnxruntime finds it: by a division, and to even halfway."""
    scale = builder.constant(steps.scale)
    nearest = builder.emit(ROUND, builder.emit(REAL_DIV, x, scale))
    from_low = builder.emit(MAXIMUM, nearest, builder.constant(np.float32(steps.low)))
    return builder.emit(MUL, builder.emit(MINIMUM, from_low, builder.constant(np.float32(steps.high))), scale)


def _steps(last: Node) -> Steps | None:
    """What a value is rounded to that is quantized and read again; None where this is no such pair."""
    if not is_onnx(last, "DequantizeLinear") or not is_onnx(last.args[0].node, "QuantizeLinear"):
        return None
    first = last.args[0].node
    of = first.out.type.dtype
    scale, zero = first.args[1].constant, zero_point(first)
    if scale is None or zero is None or scale.size != 1 or of.name not in INTEGERS:
        return None
    if not all(map(_are_equal, (scale, zero), (last.args[1].constant, zero_point(last)))):
        return None
    if {first.args[0].type.dtype.name, last.out.type.dtype.name, scale.dtype.name} != {FLOAT}:
        return None
    bounds, offset = np.iinfo(of.numpy), int(zero.reshape(()))
    return Steps(np.float32(scale.reshape(())), float(bounds.min - offset), float(bounds.max - offset))


def _are_equal(one: np.ndarray, other: np.ndarray | None) -> bool:
    return other is not None and np.array_equal(one, other)


def _is_between_kernels(graph: Graph, last: Node, options: Options) -> bool:
    """Whether neither who makes the value nor who reads it computes on integers."""
    readers = graph.users[last]
    return not _comes_from_library(last.args[0].node.args[0], options, LIBRARY_STEPS) and all(
        is_onnx(user, "QuantizeLinear") or can_join(user, options) for user in readers
    )


def _comes_from_library(x: Value, options: Options, steps: int) -> bool:
    """Whether the library makes it, but for so many steps behind an operator, which it takes along."""
    if x.node.op in LEAVES or is_onnx(x.node, "DequantizeLinear"):
        return False
    if not can_join(x.node, options):
        return True
    return steps > 0 and any(_comes_from_library(arg, options, steps - 1) for arg in x.node.args)
