"""The passes cse1 and graph_kernel_cse: equal operators on equal operands are computed once.

Before and after::

    a = Mul(x, x); b = Mul(x, x); return Add(a, b)    ==>    a = Mul(x, x); return Add(a, a)

    a = ReduceSum(x, axis=1); b = ReduceSum(Reshape(x, [6, 4]), axis=1)              x of shape [2, 3, 4], axis 2 for a
        ==>
    a = ReduceSum(x, axis=2); b = Reshape(a, [6])

The second form is graph_kernel_cse's alone: two reductions are equal when they reduce the same elements in the same runs of
memory, whatever reshapes stand before them and whether they keep the reduced dims. MindSpore alternates CSE with a pass
that moves reshapes behind reductions, until neither changes anything; one walk over final operands finds the same.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.cluster.iteration_space import reduction_space
from graphkernel.ops.library.random import is_random
from graphkernel.passes.axis_normalizer import REDUCTIONS
from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import CONSTANT, FUSED, Graph, Node, Value, keep
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import Attrs


@graph_pass
def cse1(graph: Graph, context: Context) -> Graph:
    """Merges operators with the same name, operands and attributes; kernels are not looked into."""
    return merge_equal(graph, context, cse1.name)


@graph_pass
def graph_kernel_cse(graph: Graph, context: Context) -> Graph:
    """Merges equal operators, and reductions over the same elements, in the graph and inside every kernel body."""

    def merge(body: Graph) -> Graph:
        return merge_equal(body, context, graph_kernel_cse.name, reductions=True)

    return merge(map_bodies(graph, merge))


def merge_equal(graph: Graph, context: Context, pass_name: str, *, reductions: bool = False) -> Graph:
    """One ``graph`` without its bodies: rebuilt with one node for each distinct computation, with ``reductions`` also
    for each reduction.

    What was merged goes to the log of ``context``, under ``pass_name``.
    """
    first: dict[object, Node] = {}
    reduced: dict[object, Node] = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if any([maker.data is not None for maker, _ in args]):
            args = tuple([arg if arg.node.data is None else _shared_constant(arg, first) for arg in args])
        kept = keep(node, args)
        known = first.setdefault(_key(kept), kept)
        if known is not kept:
            context.log.add(pass_name, "merged-equal", node.name, known.name)
        if not reductions or known.op not in REDUCTIONS:
            return known.outs
        same = reduced.setdefault(_reduction_key(known), known)
        if same is known:
            return known.outs
        context.log.add(pass_name, "reduction-reused", node.name, same.name)
        return _reshaped(same, known, first).outs

    return graph.rebuild(rewrite)


def _shared_constant(value: Value, first: dict[object, Node]) -> Value:
    """The first constant with the same content."""
    return first.setdefault((CONSTANT, value.node.data, value.type), value.node).out


def _key(node: Node) -> object:
    """Equal for nodes that compute the same from the same operands, of which equal constants are one."""
    if is_random(node):
        return node
    if node.op is FUSED:
        return (node.body, node.args, node.attrs.text)
    of_any_order = node.op.commutative and len(node.args) == 2
    return node.op, frozenset(node.args) if of_any_order else node.args, node.attrs.text


def _reduction_key(node: Node) -> object:
    """Equal for reductions that reduce the same elements in the same runs of memory."""
    source = node.args[0]
    while source.op is RESHAPE:
        source = source.node.args[0]
    return (node.op, source, reduction_space(node), node.attrs.without("axis", "keep_dims").text, node.out.type.dtype)


def _reshaped(same: Node, node: Node, first: dict[object, Node]) -> Node:
    """The reduction's result in the shape that the node gives it."""
    if same.types == node.types:
        return same
    made = replace(node, op=RESHAPE, args=(same.out,), attrs=Attrs.of(shape=node.out.type.shape))
    return first.setdefault(_key(made), made)
