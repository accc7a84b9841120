"""The pass shape_ops_splitter: a Reshape with several users is made once for each, so that patterns see single users.

Before and after, inside kernels::

    r = Reshape(x); a = Exp(r); b = Neg(r)    ==>    r = Reshape(x); a = Exp(r); r_1 = Reshape(x); b = Neg(r_1)

A Reshape moves nothing, so a copy costs nothing; but a shared one ties together kernels that have nothing else in
common. CSE would merge the copies again: it runs before this pass, and once more behind the splitter for those that
ended in the same place.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.shape import RESHAPE

SHAPE_OPS = frozenset({RESHAPE})


@graph_pass
def shape_ops_splitter(graph: Graph, context: Context) -> Graph:
    """Clones every Reshape inside kernels until each has one user, an output counting as a user."""
    return map_bodies(graph, lambda body: split(body, context))


def split(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies; the users take their copies in topological order, the first the original."""
    if not any(_is_shape_op(node) and _uses(graph, node) > 1 for node in graph.operators):
        return graph
    taken: set[Node] = set()

    def own(value: Value) -> Value:
        """The value for one user: a chain of shape operators up to something else is that user's own."""
        if not _is_shape_op(value.node):
            return value
        operands = tuple(own(arg) for arg in value.node.args)
        if value.node not in taken and operands == value.node.args:
            taken.add(value.node)
            return value
        context.log.add(shape_ops_splitter.name, "cloned", value.node.name)
        return Value(replace(value.node, args=operands), value.index)

    def for_user(args: tuple[Value, ...]) -> tuple[Value, ...]:
        owned = {arg: own(arg) for arg in dict.fromkeys(args)}
        return tuple(owned[arg] for arg in args)

    replaced: dict[Value, Value] = {}
    for node in graph.nodes:
        if _is_shape_op(node):
            moved = replace(node, args=tuple(replaced[arg] for arg in node.args))
        else:
            moved = replace(node, args=for_user(tuple(replaced[arg] for arg in node.args))) if node.args else node
        replaced.update(zip(node.outs, moved.outs, strict=True))
    outputs = tuple(own(replaced[value]) for value in graph.outputs)
    return with_unique_labels(graph.with_outputs(outputs))


def _is_shape_op(node: Node) -> bool:
    return node.op in SHAPE_OPS


def _uses(graph: Graph, node: Node) -> int:
    return len(graph.users[node]) + sum(value.node is node for value in graph.outputs)
