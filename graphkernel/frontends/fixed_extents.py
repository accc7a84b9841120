"""A graph with numbers in place of some symbols, in types and in what operators say about extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphkernel.ir.graph import Graph, Node, Value
from graphkernel.ir.types import Attrs, AttrValue, Sym, TensorType, substitute
from graphkernel.ops.host import ONNX


def with_extents(graph: Graph, given: Mapping[str, int]) -> Graph:
    """The graph where the symbols that ``given`` names are these numbers."""
    made: dict[Node, Node] = {}

    def moved(value: Value) -> Value:
        return Value(made[value.node], value.index)

    for node in graph.nodes:
        body = None if node.body is None else with_extents(node.body, given)
        made[node] = Node(
            node.op,
            tuple(map(moved, node.args)),
            _attrs(node, given),
            tuple(_type(type_, given) for type_ in node.types),
            node.name,
            body,
            node.data,
        )
    return replace(graph, inputs=tuple(map(moved, graph.inputs)), outputs=tuple(map(moved, graph.outputs)))


def _type(of: TensorType, given: Mapping[str, int]) -> TensorType:
    return TensorType(tuple(substitute(dim, given) for dim in of.shape), of.dtype, of.layout)


def _attrs(node: Node, given: Mapping[str, int]) -> Attrs:
    attrs = Attrs.of({name: _value(value, given) for name, value in node.attrs.items()})
    if node.op is not ONNX:
        return attrs
    return attrs.with_(result_types=tuple(str(_type(type_, given)) for type_ in node.types))


def _value(value: AttrValue, given: Mapping[str, int]) -> AttrValue:
    if isinstance(value, tuple):
        return tuple(_value(item, given) for item in value)
    return substitute(value, given) if isinstance(value, Sym) else value
