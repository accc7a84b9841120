"""The operands of a kernel in their simplest form: each that it reads, once, and tensor constants among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphkernel.cluster.fuse_nodes import is_scalar_constant, with_unique_labels
from kernelgen.tensor.attrs import NONE
from kernelgen.tensor.graph import LEAVES, PARAMETER, Changed, Graph, Node, Value, become, keep


def bind_operands(graph: Graph) -> Graph:
    """Kernels take no operand twice and none in vain; a constant with several elements becomes an operand.

    kernel K(x, y) { c = const [1, 2]; t = Add(x, c); return Mul(t, y) }    return K(p, p)
        ==>
    kernel K(x, c) { t = Add(x, c); return Mul(t, x) }                      c = const [1, 2]; return K(p, c)
    """

    def rewrite(node: Node, args: tuple[Value, ...]) -> Sequence[Value]:
        if node.body is None or node.body.aliases:
            return keep(node, args).outs
        body, operands = _bound(node.body, dict(zip(node.body.inputs, args, strict=True)))
        return (keep(node, args) if body is node.body else replace(node, args=operands, body=body)).outs

    return with_unique_labels(graph.rebuild(rewrite))


def _bound(body: Graph, outside: Mapping[Value, Value]) -> tuple[Graph, tuple[Value, ...]]:
    """The body over the operands that it reads, and these; the same body when nothing changes."""
    read = {arg for node in body.operators for arg in node.args} | set(body.outputs)
    parameters: dict[Value, Value] = {}  # by the value outside
    replaced: Changed = {}
    for leaf in (node.out for node in body.nodes if node.op in LEAVES):
        if leaf not in read or is_scalar_constant(leaf):
            replaced[leaf] = leaf
        else:
            made = leaf if leaf in outside else Node(PARAMETER, (), NONE, (leaf.type,), leaf.node.name).out
            replaced[leaf] = parameters.setdefault(outside.get(leaf, leaf), made)
    if tuple(parameters.values()) == body.inputs:
        return body, tuple(parameters)
    for node in body.operators:
        moved = keep(node, tuple(replaced[arg] for arg in node.args))
        become(replaced, node, moved)
    outputs = tuple(replaced[value] for value in body.outputs)
    return replace(body, inputs=tuple(parameters.values()), outputs=outputs), tuple(parameters)
