"""The pass axis_normalizer: one spelling for the axes of reductions, so that equal reductions look equal.

Before and after::

    ReduceSum(x, axis=(-1, 0))    ==>    ReduceSum(x, axis=(0, 2))         x of rank 3
    ReduceSum(x, axis=())         ==>    ReduceSum(x, axis=(0, 1, 2))
    ReduceSum(x, axis=-1)         ==>    ReduceSum(x, axis=(2,))
    CumSum(x, axis=-1)            ==>    CumSum(x, axis=2)

MindSpore's pass of this name leaves the single negative integer as it is. Ranks are always known here, so nothing is
skipped; a tensor of rank 0 has no axes, and ``axis=()`` is right for it.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.ops.composite.normalize import REDUCE_MEAN
from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operators.reduce import REDUCE_ALL, REDUCE_ANY, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_SUM
from kernelgen.tensor.operators.type_rules import written_axis, written_reduction
from kernelgen.tensor.types import Attrs

REDUCTIONS = frozenset({REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ALL, REDUCE_ANY, REDUCE_MEAN})


@graph_pass
def axis_normalizer(graph: Graph, context: Context) -> Graph:
    """Makes reduction axes sorted, non-negative and complete, and single axes non-negative, kernels included."""
    return normalized(map_bodies(graph, normalized))


def normalized(graph: Graph) -> Graph:
    """One graph without its bodies."""
    written = {node: attrs for node in graph.operators if (attrs := _written(node)) != node.attrs}
    return graph.rebuild(lambda node, args: replace(node, args=args, attrs=written[node]).outs, written)


def _written(node: Node) -> Attrs:
    return written_reduction(node) if node.op in REDUCTIONS else written_axis(node)
