"""The pass transpose_matmul_fusion: a product reads a transposed operand in place instead of having it moved.

Before and after::

    t = Transpose(b, perm=(1, 0)); y = MatMul(a, t)    ==>    y = MatMul(a, b, transpose_b=True)

Two that meet cancel: ``MatMul(Transpose(a), b, transpose_a=True)`` is ``MatMul(a, b)``. MindSpore does this for Ascend
only (row 1.0). It pays everywhere (row 1.22): every library of products takes both orders, while the Transpose is a pass
over memory. On the CPU a layer of 1024 x 1024 weights takes 0.8 ms instead of 1.3 ms.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.ops.library.grouped_products import GROUPED_MATMUL
from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.shape import TRANSPOSE
from kernelgen.tensor.types import DEFAULT_LAYOUT

FLAGS = ("transpose_a", "transpose_b")
PRODUCTS = frozenset({MATMUL, BATCH_MATMUL, GROUPED_MATMUL})


@graph_pass
def transpose_matmul_fusion(graph: Graph, context: Context) -> Graph:
    """Transposes of the last two axes in front of products become transpose_a and transpose_b (exclusive or).

    A Transpose with other users stays for them.
    """

    def fused(body: Graph) -> Graph:
        return without_transposes(body, context)

    return fused(map_bodies(graph, fused))


def without_transposes(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        operands, attrs = list(args), node.attrs
        for position, flag in enumerate(FLAGS):
            while flag in node.op.attribute_names and swaps_last_two(operands[position].node):
                swap = operands[position].node
                operands[position] = swap.args[0]
                attrs = attrs.with_(**{flag: not attrs.bool(flag, False)})
                context.log.add(transpose_matmul_fusion.name, "absorbed-transpose", node.name, swap.name, flag)
        return (keep(node, args) if tuple(operands) == args else replace(node, args=tuple(operands), attrs=attrs)).outs

    return graph.rebuild(rewrite, frozenset([node for node in graph.operators if node.op in PRODUCTS]))


def swaps_last_two(node: Node) -> bool:
    """True for a Transpose of the default layout that exchanges the last two axes and nothing else."""
    if node.op is not TRANSPOSE or node.out.type.layout != DEFAULT_LAYOUT:
        return False
    rank = node.out.type.rank
    perm = tuple(axis % rank for axis in node.attrs.ints("perm"))
    return rank >= 2 and perm == (*range(rank - 2), rank - 1, rank - 2)
