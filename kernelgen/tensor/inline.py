"""Fused nodes become ordinary operators again, where no kernel can be made of them.

f(x, y) = Exp(Add(x, y))        z = f(a, b)   ->   t = Add(a, b); z = Exp(t)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelgen.tensor.graph import Graph, Node, Value, keep


def inline(graph: Graph, dissolved: Callable[[Node], bool]) -> tuple[Graph, Mapping[Node, Node]]:
    """The graph with the bodies of some fused nodes in their places, and for every node that stays what stands for it now.

    ``dissolved`` is asked of fused nodes only. The same graph comes back when it is true of none.
    """
    kept: dict[Node, Node] = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node.body is None or not dissolved(node):
            kept[node] = keep(node, args)  # another node where an operand was inlined
            return kept[node].outs
        inside = dict(zip(node.body.inputs, args, strict=True))
        for inner in node.body.nodes:
            if inner.outs[0] not in inside:
                copy = keep(inner, tuple(inside[arg] for arg in inner.args))
                inside.update(zip(inner.outs, copy.outs, strict=True))
        return tuple(inside[value] for value in node.body.outputs)

    return graph.rebuild(rewrite), kept
