"""The pass quantized_between: what is quantized and read as numbers again between operators of kernels is rounded there.

Before and after::

    q = QuantizeLinear(x, s, z)             ==>    r = Round(RealDiv(x, s))
    y = DequantizeLinear(q, s, z)                  y = Mul(Minimum(Maximum(r, low - z), high - z), s)

    y = (the same pair)(Reshape(y))         ==>    y = Reshape(y)          the numbers are rounded already

    d = DequantizeLinear(q, s, z)           ==>    d = Mul(Cast(Sub(Cast(q), z)), s)      q: made by a kernel
    y = Gather(DequantizeLinear(w, s), i)   ==>    y = Mul(Cast(Gather(w, i)), s)         w: a constant table

A quantized model says at every edge to which numbers values are rounded. Beside a convolution or a product the library computes
on the integers. Between two operators of kernels nobody wants them, and the pair by itself was a call of the library. Products
of attentions, which would be in kernels but for such pairs, count as operators of kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphkernel.cluster.attention import attention_products
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.own_pieces import is_own_gather
from graphkernel.cluster.stored_weights import known
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.cluster import can_join
from graphkernel.passes.named_fusion.written_quant import is_onnx, zero_point
from graphkernel.passes.precision.quantization import FLOAT, dequantized
from kernelgen.tensor.graph import LEAVES, Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.elemwise import MAXIMUM, MINIMUM, MUL, REAL_DIV, ROUND
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.shape import TRANSPOSE

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
    if not any(is_onnx(node, "DequantizeLinear") for node in graph.operators):
        return graph
    kernels = Kernels(context.options, _attentions(graph))
    made: dict[Value, Steps] = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept, builder = keep(node, args), Builder(origin=node.name)
        steps = _steps(node)
        if steps is not None and _is_between_kernels(graph, node, kernels):
            x = args[0].node.args[0]
            result = x if made.get(_moved_from(x)) == steps else rounded(x, steps, builder)
            made[_moved_from(result)] = steps
        elif steps is None and _is_read_by_kernels(graph, node, kernels):
            result = _read(kept, args[0], builder)
        elif is_own_gather(node) and _is_table(kept.args[0].node):
            rows = builder.node(GATHER, (kept.args[0].node.args[0], *kept.args[1:]), kept.attrs).out
            result = _read(kept.args[0].node, rows, builder)
        else:
            return kept.outs
        context.log.add(quantized_between.name, "idiom-recognised", node.name, message="rounded in a kernel")
        return (result,)

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)


def _moved_from(x: Value) -> Value:
    """Whose elements these are, all of them and no others."""
    while x.node.op is TRANSPOSE or x.node.op.kind is Kind.RESHAPE:
        x = x.node.args[0]
    return x


def _attentions(graph: Graph) -> frozenset[str]:
    """The names of products that would be an attention's if all pairs were arithmetic."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        steps = _steps(node)
        return keep(node, args).outs if steps is None else (rounded(args[0].node.args[0], steps, Builder()),)

    return frozenset(node.name for node in attention_products(graph.rebuild(rewrite)))


@dataclass(frozen=True)
class Kernels:
    """What kernels hold: all that they may, and the products of these names."""

    options: Options
    products: frozenset[str]

    def hold(self, node: Node) -> bool:
        """Whether a kernel holds an operator."""
        return node.name in self.products or can_join(node, self.options)


def _read(node: Node, numbers: Value, builder: Builder) -> Value:
    """What a DequantizeLinear by one scale makes of ``numbers``."""
    scale, zero = known(node.args[1]), zero_point(node)
    assert scale is not None, "it was asked before"
    assert zero is not None, "it was asked before"
    return dequantized(Tensor(numbers, builder), scale.reshape(()), zero.reshape(())).value


def _is_by_one_scale(node: Node) -> bool:
    """Whether it is a DequantizeLinear to float32 by one constant scale."""
    if not is_onnx(node, "DequantizeLinear") or node.out.type.dtype.name != FLOAT:
        return False
    scale, zero = known(node.args[1]), zero_point(node)
    of = node.args[0].type.dtype.name
    return scale is not None and zero is not None and scale.size == zero.size == 1 and of in INTEGERS


def _is_read_by_kernels(graph: Graph, node: Node, kernels: Kernels) -> bool:
    """Whether it reads what a kernel makes, for operators of kernels, or a constant for those that move its elements."""
    if not _is_by_one_scale(node):
        return False
    made, users = node.args[0].node, graph.users[node]
    if made.op not in LEAVES:
        return kernels.hold(made) and all(map(kernels.hold, users))
    return all(kernels.hold(user) and user.op.traits.moves and not is_own_gather(user) for user in users)


def _is_table(node: Node) -> bool:
    """Whether it reads a constant."""
    return _is_by_one_scale(node) and known(node.args[0]) is not None


def rounded(x: Value, steps: Steps, builder: Builder) -> Value:
    """The nearest of the ``steps`` to ``x``, as onnxruntime finds it: by a division, and to even halfway (into ``builder``)."""
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


def _is_between_kernels(graph: Graph, last: Node, kernels: Kernels) -> bool:
    """Whether neither who makes the value nor who reads it computes on integers."""
    readers = graph.users[last]
    return not _comes_from_library(last.args[0].node.args[0], kernels, LIBRARY_STEPS) and all(
        is_onnx(user, "QuantizeLinear") or kernels.hold(user) for user in readers
    )


def _comes_from_library(x: Value, kernels: Kernels, steps: int) -> bool:
    """Whether the library makes it, but for so many steps behind an operator, which it takes along."""
    if x.node.op in LEAVES or is_onnx(x.node, "DequantizeLinear"):
        return False
    if not kernels.hold(x.node):
        return True
    numbers = (arg for arg in x.node.args if arg.type.dtype.is_float)
    return steps > 0 and any(_comes_from_library(arg, kernels, steps - 1) for arg in numbers)
