"""The pass optimize_assign: who reads a value that a kernel also assigns reads the assigned one, so that it is stored once.

Before and after::

    kernel K(p, v) { t = Add(p, v); a = Assign(p, t); return t, a }    t, a = K(p, v); u = Exp(t); return u, a -> p
        ==>
    kernel K(p, v) { t = Add(p, v); a = Assign(p, t); return t, a }    t, a = K(p, v); u = Exp(a); return u, a -> p

Nobody reads the first result then, and eliminate_redundant_output drops it. MindSpore adds an edge so that the reader waits
for the store; here the operand is that edge.
"""

from __future__ import annotations

from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.effects import ASSIGN


@graph_pass
def optimize_assign(graph: Graph, context: Context) -> Graph:
    """Redirects the readers of a kernel's result to the result that is the same value behind an Assign."""
    used = {value for node in graph.operators for value in node.args} | set(graph.outputs)
    assigned = {node: found for node in graph.operators if (found := _assigned(node, used))}
    if not assigned:
        return graph
    for node, pairs in assigned.items():
        for plain, stored in pairs.items():
            message = f"result {stored} is read instead of result {plain}"
            context.log.add(optimize_assign.name, "assigned-value-read", node.name, message=message)

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        outs, pairs = keep(node, args).outs, assigned.get(node, {})
        return tuple(outs[pairs.get(index, index)] for index in range(len(outs)))

    return graph.rebuild(rewrite)


def _assigned(node: Node, used: set[Value]) -> dict[int, int]:
    """For each used result of a kernel that another result assigns, the position of that other one."""
    if node.body is None:
        return {}
    outputs = node.body.outputs
    stored = {value.node.args[1]: index for index, value in enumerate(outputs) if value.op is ASSIGN}
    return {
        index: stored[value]
        for index, value in enumerate(outputs)
        if value in stored and Value(node, index) in used and Value(node, stored[value]) in used
    }
