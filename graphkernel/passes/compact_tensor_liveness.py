"""The pass compact_tensor_liveness: kernels compute their operands in the order that keeps the fewest bytes alive.

Before and after::

    z = Z(); a = K(x); b = L(a); c = M(z, b)    ==>    a = K(x); b = L(a); z = Z(); c = M(b, z)

The order of a graph is that of its operands, the first one's producers first; kernels take their operands in any order, so
to exchange two of them is to exchange when they are made. What makes a small result out of large ones goes first, and what
needs no operands, such as cleared memory, goes last. The graph changes only when the peak of live bytes drops.

Source: R. Sethi, J. D. Ullman, "The Generation of Optimal Code for Arithmetic Expressions" (1970), with bytes for registers:
operands in falling order of (peak while computing - size of the result). MindSpore's pass of this name ties kernels
without operands to a sibling of their reader, which is the second half of that rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphkernel.cluster.cost import human
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.liveness import memories, peak_bytes, static_bytes
from graphkernel.cluster.naming import Names, suffix_of
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import LEAVES, Alias, Graph, Node, Value, keep

PASS_NAME = "compact_tensor_liveness"


@graph_pass
def compact_tensor_liveness(graph: Graph, context: Context) -> Graph:
    """Reorders the operands of kernels by the bytes that computing them keeps alive, if that lowers the peak."""
    before = peak_bytes(graph)
    if before is None:
        context.log.add(PASS_NAME, "not-reordered-liveness", graph.name, message="its extents are not known")
        return graph
    changed = _reordered(graph, _needs(graph))
    if changed is graph:
        return graph
    after = peak_bytes(changed)
    assert after is not None, "the same values have the same sizes"
    figures = f"peak {human(before)}, reordered {human(after)}"
    lower = after < before
    code = "reordered-liveness" if lower else "not-reordered-liveness"
    context.log.add(PASS_NAME, code, graph.name, message=figures)
    return changed if lower else graph


def _needs(graph: Graph) -> Mapping[Node, int]:
    """For each node the most bytes alive while its result is computed from nothing, operands in the best order.

    Of a value with several readers each counts the whole way to it, so this is exact for trees and a guide elsewhere.
    """
    memory = memories(graph)
    needs: dict[Node, int] = dict.fromkeys((node for node in graph.nodes if node.op in LEAVES), 0)
    for node in graph.operators:
        producers = _in_order(list(dict.fromkeys(arg.node for arg in node.args)), needs)
        held = peak = 0
        for producer in producers:
            peak = max(peak, held + needs[producer])
            held += _size(producer)
        needs[node] = max(peak, held + sum(static_bytes(value) or 0 for value in node.outs if memory[value] == value))
    return needs


def _size(node: Node) -> int:
    """Bytes of all results; a view is counted with what it shows."""
    return sum(static_bytes(value) or 0 for value in node.outs)


def _in_order(producers: Sequence[Node], needs: Mapping[Node, int]) -> list[Node]:
    """Producers in the order in which they are best computed; equal ones stay as they stand."""
    return sorted(producers, key=lambda node: -(needs[node] - _size(node)) if node.args else 1)


def _reordered(graph: Graph, needs: Mapping[Node, int]) -> Graph:
    """The graph in which every kernel takes its operands in the best order; leaves stay at their places."""
    names = Names.beside(graph)

    def rewrite(node: Node, args: tuple[Value, ...]) -> Sequence[Value]:
        order = _order(node, needs)
        if node.body is None or order == list(range(len(args))):
            return keep(node, args).outs
        aliases = tuple(Alias(alias.output, order.index(alias.input)) for alias in node.body.aliases)
        body = replace(node.body, inputs=tuple(node.body.inputs[i] for i in order), aliases=aliases)
        body = names.named(body, suffix_of(body))
        return replace(node, args=tuple(args[i] for i in order), body=body).outs

    changed = graph.rebuild(rewrite)
    return changed if changed is graph else with_unique_labels(changed)


def _order(node: Node, needs: Mapping[Node, int]) -> list[int]:
    """The positions of the operands in their new order."""
    computed = [i for i, arg in enumerate(node.args) if arg.node.op not in LEAVES]
    producers = _in_order(list(dict.fromkeys(node.args[i].node for i in computed)), needs)
    rank = {producer: turn for turn, producer in enumerate(producers)}
    ordered = iter(sorted(computed, key=lambda i: rank[node.args[i].node]))
    return [next(ordered) if arg.node.op not in LEAVES else i for i, arg in enumerate(node.args)]
