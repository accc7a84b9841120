"""The boundary of a kernel in its simplest form: what crosses it is computed inside and needed outside, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphkernel.cluster.extract import is_scalar_constant, with_unique_labels
from graphkernel.ir.graph import LEAVES, Builder, Graph, Node, Value, keep


def tidy_boundaries(graph: Graph) -> Graph:
    """Every kernel takes each operand once and only those it reads, and gives each result once and only those used.

    A result that is a parameter or a constant is taken around the kernel, a tensor constant becomes an operand.
    """
    while (tidied := _tidied(graph)) is not graph:  # a result dropped here may make one unused further up
        graph = tidied
    return graph


def _tidied(graph: Graph) -> Graph:
    used = {arg for node in graph.operators for arg in node.args} | set(graph.outputs)

    def rewrite(node: Node, args: tuple[Value, ...]) -> Sequence[Value]:
        if node.body is None or node.body.aliases:
            return keep(node, args).outs
        return _tidy(keep(node, args), [value in used for value in node.outs])

    return with_unique_labels(graph.rebuild(rewrite))


def _tidy(node: Node, is_used: Sequence[bool]) -> Sequence[Value]:
    """What replaces the results of a kernel."""
    body = node.body
    assert body is not None, "only kernels have a boundary"
    computed = dict.fromkeys(
        value for value, used in zip(body.outputs, is_used, strict=True) if used and value.op not in LEAVES
    )
    outside = dict(zip(body.inputs, node.args, strict=True))
    inner, operands = _with_operands(Graph(body.name, body.inputs, tuple(computed)), outside)
    if inner.inputs == body.inputs and operands == node.args and inner.outputs == body.outputs:
        return node.outs
    results: dict[Value, Value] = {}
    if computed:
        types = tuple(value.type for value in inner.outputs)
        call = replace(node, args=operands, types=types, body=inner)
        results = dict(zip(computed, call.outs, strict=True))
    return [results.get(value, outside.get(value, value)) for value in body.outputs]


def _with_operands(body: Graph, outside: dict[Value, Value]) -> tuple[Graph, tuple[Value, ...]]:
    """The body over the operands that it reads: none twice, tensor constants among them."""
    builder = Builder()
    parameters: dict[Value, Value] = {}  # by the value outside
    replaced: dict[Value, Value] = {}
    read = {arg for node in body.operators for arg in node.args}
    for value in (value for node in body.nodes for value in node.outs):
        if value.op not in LEAVES:
            continue
        if value not in read or is_scalar_constant(value):
            replaced[value] = value
            continue
        operand = outside.get(value, value)
        if operand not in parameters:
            label = builder.label(value.node.name)
            parameters[operand] = value if value in outside else builder.parameter(label, value.type)
        replaced[value] = parameters[operand]
    for node in body.operators:
        moved = keep(node, tuple(replaced[arg] for arg in node.args))
        replaced.update(zip(node.outs, moved.outs, strict=True))
    outputs = tuple(replaced[value] for value in body.outputs)
    return Graph(body.name, tuple(parameters.values()), outputs), tuple(parameters)
