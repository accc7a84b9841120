"""The pass floatstatus_addn_fusion: FloatStatus under AddN becomes basic operators that end in ElemAny.

Before and after::

    s = FloatStatus(x); t = FloatStatus(y); n = AddN(s, t)
        ==>
    s = ElemAny(Cast(LogicalNot(IsFinite(x)), float32)); t = ...; n = AddN(s, t)

ElemAny is what kernels compute without waiting for one another: every thread that meets a number that is not finite
writes the same 1. IsFinite takes x in its own data type, so that nothing is cast that need not be.
"""

from __future__ import annotations

from graphkernel import ops
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.ops import Tensor
from graphkernel.ops.composite.activation import ADD_N
from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.status import FLOAT_STATUS


@graph_pass
def floatstatus_addn_fusion(graph: Graph, context: Context) -> Graph:
    """Every FloatStatus that an AddN of nothing but FloatStatus adds up becomes IsFinite, LogicalNot, Cast, ElemAny."""

    def fused(body: Graph) -> Graph:
        return with_elem_any(body, context)

    return fused(map_bodies(graph, fused))


def with_elem_any(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""
    summed = {arg.node for node in graph.operators if _adds_statuses(node) for arg in node.args}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node not in summed:
            return keep(node, args).outs
        context.log.add(floatstatus_addn_fusion.name, "expanded", node.name, message="FloatStatus under AddN")
        broken = ops.logical_not(ops.is_finite(Tensor(args[0], Builder(origin=node.name))))
        return (ops.elem_any(ops.cast(broken, "float32")).value,)

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)


def _adds_statuses(node: Node) -> bool:
    return node.op is ADD_N and all(arg.op is FLOAT_STATUS for arg in node.args)
