"""The pass raise_reduction_precision: narrow floats are summed in float32 and rounded once.

Before and after, inside kernels::

    s = ReduceSum(x); y = Cast(s, float32)    ==>    s = ReduceSum(Cast(x, float32)); y = s               x: f16
    s = ReduceSum(x); return s                ==>    s = ReduceSum(Cast(x, float32)); return Cast(s, float16)

Sums of 2049 ones in float16 stop at 2048: the accumulator needs more bits than the addends.
"""

from __future__ import annotations

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.reduce import REDUCE_SUM
from kernelgen.tensor.types import Attrs, dtype

NARROW = frozenset({dtype("float16"), dtype("bfloat16")})
WIDE = dtype("float32")


@graph_pass
def raise_reduction_precision(graph: Graph, context: Context) -> Graph:
    """ReduceSum of float16 and bfloat16 accumulates in float32; a Cast to float32 behind it disappears.

    Only kernels are rewritten: outside them a Cast would be a trip through memory.
    """
    return map_bodies(graph, lambda body: raised(body, context))


def raised(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""
    unrounded: dict[Value, Value] = {}
    concerned = frozenset([node for node in graph.operators if node.op in (REDUCE_SUM, CAST)])

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node.op is REDUCE_SUM and node.out.type.dtype in NARROW:
            builder = Builder(origin=node.name)
            addends = builder.emit(CAST, args[0], dst_type=WIDE.name)
            total = builder.node(node.op, (addends,), node.attrs, node.name).out
            rounded = builder.node(CAST, (total,), Attrs.of(dst_type=node.out.type.dtype.name)).out
            unrounded[rounded] = total
            context.log.add(raise_reduction_precision.name, "precision-raised", node.name)
            return (rounded,)
        if node.op is CAST and node.out.type.dtype == WIDE and args[0] in unrounded:
            return (unrounded[args[0]],)
        return keep(node, args).outs

    result = graph.rebuild(rewrite, concerned)
    return result if result is graph else with_unique_labels(result)
