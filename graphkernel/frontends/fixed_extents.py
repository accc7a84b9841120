"""A graph with numbers in place of some symbols, in types and in what operators say about extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphkernel.ops.library.host import ONNX
from kernelgen.tensor.attrs import with_dims
from kernelgen.tensor.derived import Derived
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.types import Attrs, TensorType, substitute


def with_extents(graph: Graph, given: Mapping[str, int]) -> Graph:
    """The graph where the symbols that ``given`` names are these numbers, and those that follow from them alone."""
    given, derived = _known(graph.derived, given)
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
    return replace(
        graph, inputs=tuple(map(moved, graph.inputs)), outputs=tuple(map(moved, graph.outputs)), derived=derived
    )


def _known(derived: Sequence[Derived], given: Mapping[str, int]) -> tuple[Mapping[str, int], tuple[Derived, ...]]:
    values, left = dict(given), list[Derived]()
    for entry in derived:
        after = entry.after(values)
        if after.symbols:
            left.append(after)
        else:
            values[entry.name] = after.value({})
    return values, tuple(left)


def _type(of: TensorType, given: Mapping[str, int]) -> TensorType:
    return TensorType(tuple(substitute(dim, given) for dim in of.shape), of.dtype, of.layout)


def _attrs(node: Node, given: Mapping[str, int]) -> Attrs:
    attrs = Attrs.of({name: with_dims(value, lambda dim: substitute(dim, given)) for name, value in node.attrs.items()})
    if node.op is not ONNX:
        return attrs
    return attrs.with_(result_types=tuple(str(_type(type_, given)) for type_ in node.types))
