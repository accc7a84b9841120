"""The pass graph_kernel_cse: equal operators on equal operands are computed once.

Before and after::

    a = Mul(x, x); b = Mul(x, x); return Add(a, b)    ==>    a = Mul(x, x); return Add(a, a)
"""

from __future__ import annotations

from graphkernel.ir.graph import CONSTANT, FUSED, Graph, Node, Value, keep
from graphkernel.passes.base import Context, graph_pass, map_bodies


@graph_pass
def graph_kernel_cse(graph: Graph, context: Context) -> Graph:
    """Merges operators with the same name, operands and attributes, in the graph and inside every kernel body."""

    def merge(body: Graph) -> Graph:
        return merge_equal(body, context)

    return merge(map_bodies(graph, merge))


def merge_equal(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies: rebuilt with one node for each distinct computation."""
    first: dict[object, Node] = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, tuple(_shared_constant(arg, first) for arg in args))
        known = first.setdefault(_key(kept), kept)
        if known is not kept:
            context.log.add(graph_kernel_cse.name, "merged-equal", node.name, known.name)
        return known.outs

    return graph.rebuild(rewrite)


def _shared_constant(value: Value, first: dict[object, Node]) -> Value:
    """The first constant with the same content."""
    if value.op is not CONSTANT or value.node.data is None:
        return value
    return first.setdefault((CONSTANT, value.node.data.digest, value.type), value.node).out


def _key(node: Node) -> object:
    """Equal for nodes that compute the same; commutative operands may stand in either order.

    Attributes are compared as text, because 1 == True and 0.0 == -0.0.
    """
    if node.op is FUSED:
        return (node.body, node.args)
    args = frozenset(node.args) if node.op.commutative else node.args
    return (node.op, args, repr(node.attrs), node.types)
