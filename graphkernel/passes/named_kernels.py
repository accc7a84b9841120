"""The passes named_by_cost and named_kernels: an operator that Ascend has by name never costs a kernel.

A named operator (AddLayerNorm, PromptFlashAttention) is one launch of the vendor's. Where its parts are one kernel of ours
that takes neighbours in, the parts are better; where they would be several launches, the operator is. One that stays is a
kernel too: of a body that holds nothing but the operator, which the generator is handed by its parts, and which is that
operator again where the generator declines it or an exporter asks for its name.

Before and after::

    y, m, r, s = AddLayerNorm(a, b, g, h)      kernel Fused_AddLayerNorm_named(a, b, g, h) { y, .. = AddLayerNorm(a, b, g, h) }
                                         ==>   y, s = Fused_AddLayerNorm_named(a, b, g, h)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from graphkernel.cluster.cost import human
from graphkernel.cluster.fuse_nodes import extract, splice, with_unique_labels
from graphkernel.cluster.naming import NAMED as SUFFIX
from graphkernel.cluster.naming import Names
from graphkernel.decisions import DecisionLog
from graphkernel.expanders.base import expand
from graphkernel.expanders.fused import NAMED
from graphkernel.expanders.lists import NATIVE_ON_ASCEND
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.cluster import can_join, graph_kernel_cluster
from graphkernel.passes.split import graph_kernel_splitter
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.pieces import CONCAT, SPLIT
from kernelgen.tensor.types import Dim

COST_PASS, KERNEL_PASS = "named_by_cost", "named_kernels"
OPAQUE_IN_KERNELS = frozenset({MATMUL, BATCH_MATMUL, SPLIT, CONCAT})


@dataclass(frozen=True)
class _Cost:
    """What a graph takes: kernels and operators outside of kernels, and the bytes that all of them read and write."""

    launches: int
    moved: Dim

    @staticmethod
    def of(graph: Graph) -> _Cost:
        """Views cost nothing, nor do constants of one element."""
        calls = [node for node in graph.operators if node.op.kind is not Kind.RESHAPE]
        touched = (value for node in calls for value in dict.fromkeys((*node.args, *node.outs)))
        moved: Dim = 0
        for value in touched:
            moved = moved + (0 if value.is_known else value.type.size * value.type.dtype.itemsize)
        return _Cost(len(calls), moved)

    def __str__(self) -> str:
        return f"{self.launches} launch{'' if self.launches == 1 else 'es'} of {human(self.moved)}"


@dataclass(frozen=True)
class _Offer:
    """What the parts of a named operator take, and what it takes itself."""

    ours: _Cost
    theirs: _Cost


@graph_pass
def named_by_cost(graph: Graph, context: Context) -> Graph:
    """A named operator becomes its parts where they are one kernel that a neighbour can join, or no kernel at all."""
    names = NATIVE_ON_ASCEND - set(context.options.disable_expand_ops)
    if context.options.enable_expand_ops_only:
        return graph
    known: dict[Hashable, _Offer | None] = {}  # layers repeat
    found: dict[Node, Graph] = {}
    for node in graph.operators:
        if node.op.name in names:
            key = (node.op.name, node.attrs.text, tuple(arg.type for arg in node.args))
            if key not in known:
                known[key] = _offer(node, context)
            offer = known[key]
            if offer is not None and _is_better(offer, node, graph, context):
                found[node] = basic(_alone(node))  # labels tell where parts come from
    if not found:
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        return splice(found[node], args) if node in found else keep(node, args).outs

    return with_unique_labels(graph.rebuild(rewrite))


def _offer(node: Node, context: Context) -> _Offer | None:
    """What the parts of an operator would take alone; None where it does not expand."""
    alone = _alone(node)
    parts = basic(alone)
    if parts is alone:
        return None
    quiet = replace(context, log=DecisionLog())
    ours = _Cost.of(graph_kernel_splitter(graph_kernel_cluster(parts, quiet), quiet))
    return _Offer(ours, _Cost.of(alone))


def _is_better(offer: _Offer, node: Node, graph: Graph, context: Context) -> bool:
    """Whether the parts of a node are no dearer than it is; the log says what decided."""
    around = _neighbours(node, graph, context)
    is_better = offer.ours.launches == 0 or (offer.ours.launches == 1 and bool(around))
    compared = f"{node.op.name} is {offer.theirs}, its parts are {offer.ours}"
    joined = f", which {' and '.join(around)} can join" if around and is_better else ""
    context.log.add(COST_PASS, "expanded-named" if is_better else "kept-named", node.name, message=compared + joined)
    return is_better


def _neighbours(node: Node, graph: Graph, context: Context) -> list[str]:
    """The operators beside a node that a kernel could hold together with it; views move no bytes and do not count."""
    beside = dict.fromkeys([*(arg.node for arg in node.args), *graph.users[node]])
    fit = [one for one in beside if one.op.kind is not Kind.RESHAPE and can_join(one, context.options)]
    return [f"{one.op.name} {one.name}" for one in fit]


@graph_pass
def named_kernels(graph: Graph, context: Context) -> Graph:
    """Every named operator whose parts a kernel can hold becomes the only operator of a kernel."""
    groups = [(node,) for node in graph.operators if node.op.name in NAMED and _fits(node)]
    if not groups:
        return graph
    for (node,) in groups:
        context.log.add(KERNEL_PASS, "named-kernel", node.name, message=node.op.name)
    names = Names.beside(graph)
    return extract(graph, groups, lambda body: names.named(body, SUFFIX))


def _fits(node: Node) -> bool:
    """True when the generator knows every part; a Reshape alone is a view."""
    parts = basic(_alone(node)).operators
    known = all(part.op.kind is not Kind.OPAQUE or part.op in OPAQUE_IN_KERNELS for part in parts)
    return known and any(part.op.kind is not Kind.RESHAPE for part in parts)


def _alone(node: Node) -> Graph:
    """A node as a graph of its own, with a parameter for each operand."""
    builder = Builder()
    inputs = tuple(builder.parameter(f"x{place}", arg.type) for place, arg in enumerate(node.args))
    return Graph(node.name, inputs, keep(node, inputs).outs)


def basic(body: Graph) -> Graph:
    """The body with its named operators by their parts; the same body when it has none, or none that expands."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        entry = NAMED.get(node.op.name)
        found = expand(entry, node, args, Builder(origin=node.name), "ascend") if entry is not None else None
        return found if isinstance(found, tuple) else keep(node, args).outs

    result = body.rebuild(rewrite)
    return result if result is body else with_unique_labels(result)
