"""The pass cast_matmul_fusion: a product in half precision takes its bias in single precision.

Before and after::

    c = Cast(bias, float16); y = MatMul(a, b, c)    ==>    y = MatMul(a, b, bias)      a, b: f16, bias: f32

Units for products add up in single precision anyway: the Cast is work that loses bits.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.types import dtype

PRODUCTS = frozenset({MATMUL, BATCH_MATMUL})
WIDE, NARROW = dtype("float32"), dtype("float16")
BIAS = 2


@graph_pass
def cast_matmul_fusion(graph: Graph, context: Context) -> Graph:
    """A bias that is a Cast from float32 to float16 for one product only is taken as it was before the Cast."""

    def fused(body: Graph) -> Graph:
        return without_casts(body, context)

    return fused(map_bodies(graph, fused))


def without_casts(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if node.op not in PRODUCTS or len(args) <= BIAS or not _is_own_cast(graph, node.args[BIAS].node):
            return kept.outs
        context.log.add(cast_matmul_fusion.name, "absorbed-cast", node.name, node.args[BIAS].node.name)
        return replace(kept, args=(*args[:BIAS], args[BIAS].node.args[0])).outs

    return graph.rebuild(rewrite)


def _is_own_cast(graph: Graph, node: Node) -> bool:
    """True for a Cast from float32 to float16 with one user."""
    if node.op is not CAST or node.out.type.dtype != NARROW or node.args[0].type.dtype != WIDE:
        return False
    return len(graph.users[node]) == 1 and node not in graph.output_nodes
