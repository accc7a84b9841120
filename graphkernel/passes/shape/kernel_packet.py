"""The pass kernel_packet: an operator and the arithmetic on shapes that it waits for become one node.

Before and after::

    s = Shape(y)                                  r = DynamicReshape_packet(x, y, only_depend_shape=(1,))
    t = Mul(s, 2)                          ==>
    r = DynamicReshape(x, t, shape=[2 * N, 8])

A device would otherwise wait for the host, which computes a few numbers from shapes, which are known before anything runs.
The packet says by ``only_depend_shape`` of which operands it reads the shape alone, so that it can start before their content
is there. Axes and shapes are attributes here and extents are symbols, so packets remain for operators that take such numbers
as a tensor and that no expander has rewritten. A packet is no kernel to be generated: it is run operator by operator.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from graphkernel.cluster.fuse_nodes import body_of, call_of, with_unique_labels
from graphkernel.cluster.naming import Content, called
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.shape.shape_values import numbers_of_shapes
from kernelgen.tensor.attrs import symbols_in
from kernelgen.tensor.graph import LEAVES, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.creation import SHAPE
from kernelgen.tensor.types import Attrs, symbols_of

PASS_NAME = "kernel_packet"
ATTRIBUTE = "only_depend_shape"


def is_packet(node: Node) -> bool:
    """Whether a node is a packet: an operator with the arithmetic on shapes that it waits for, whoever runs it."""
    return node.body is not None and ATTRIBUTE in node.attrs


@graph_pass
def kernel_packet(graph: Graph, context: Context) -> Graph:
    """Every operator with operands that are computed from shapes alone takes that computation inside.

    ``enable_packet_ops_only`` and ``disable_packet_ops`` say which operators may. What several operators need is computed in
    each: it is a few numbers.
    """
    host = numbers_of_shapes(graph)
    names = _PacketNames()
    moved: dict[Value, Value] = {value: value for node in graph.nodes if node.op in LEAVES for value in node.outs}
    for node in graph.operators:
        made = keep(node, tuple(moved[arg] for arg in node.args))
        packed = _packed(node, host, context)
        if packed is not None:
            body, operands = packed
            named = names.named(body, node.op.name)
            call = call_of(named, [moved[value] for value in operands])
            made = replace(call, name=node.name, attrs=Attrs.of({ATTRIBUTE: _only_shapes(named)}))
        moved.update(zip(node.outs, made.outs, strict=True))
    result = graph.with_outputs(tuple(moved[value] for value in graph.outputs))
    return result if result is graph else with_unique_labels(result)


def _packed(node: Node, host: frozenset[Node], context: Context) -> tuple[Graph, tuple[Value, ...]] | None:
    """The body and the operands of a packet for an operator that takes numbers from the host; the log says why not."""
    if node in host or node.body is not None or not any(arg.node in host for arg in node.args):
        return None
    body, operands = body_of((*_needed(node, host), node), node.outs)
    reason = _refusal(node, context.options) or _unbound(body)
    context.log.add(PASS_NAME, "not-packed" if reason else "packed", node.name, message=reason)
    return None if reason else (body, operands)


def _refusal(node: Node, options: Options) -> str:
    name = node.op.name
    if len(node.types) != 1:
        return f"{name} has {len(node.types)} results, a packet has one"
    if node.op.kind is Kind.VIRTUAL:
        return f"{name} writes into an operand"
    only = options.enable_packet_ops_only
    if (only and name not in only) or (not only and name in options.disable_packet_ops):
        return f"{name} is excluded by a packet_ops flag"
    return ""


def _unbound(body: Graph) -> str:
    """A packet learns the values of symbols from its operands: why one is missing, if so."""
    known = {name for value in body.inputs for name in symbols_of(value.type.shape)}
    for node in body.operators:
        for name in symbols_in(node.attrs.values()):
            if name not in known:
                return f"no operand of the packet has the symbol {name} in its shape"
    return ""


def _needed(node: Node, host: frozenset[Node]) -> tuple[Node, ...]:
    """What the host computes for a node, operands first."""
    found: dict[Node, None] = {}
    stack = [(arg.node, False) for arg in reversed(node.args)]
    while stack:
        producer, ready = stack.pop()
        if ready:
            found[producer] = None
        elif producer in host and producer not in found:
            stack.append((producer, True))
            stack.extend((arg.node, False) for arg in reversed(producer.args))
    return tuple(found)


def _only_shapes(body: Graph) -> tuple[int, ...]:
    """The positions of the operands of which nothing but the shape is read."""
    return tuple(
        position
        for position, value in enumerate(body.inputs)
        if all(user.op is SHAPE for user in body.users[value.node])
    )


@dataclass
class _PacketNames:
    """Names ``<operator>_packet``: one for equal packets, a numbered one for others."""

    _given: dict[str, dict[Hashable, Graph]] = field(default_factory=dict[str, dict[Hashable, Graph]])

    def named(self, body: Graph, operator: str) -> Graph:
        """The body under its name; of equal bodies the first."""
        given = self._given.setdefault(operator, {})
        name = f"{operator}_packet{f'_{len(given)}' if given else ''}"
        return given.setdefault(Content(body), called(body, name))
