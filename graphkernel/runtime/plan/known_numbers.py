"""Operators that need shapes only: they are no steps, their few numbers are computed once for each set of input shapes."""

from __future__ import annotations

from graphkernel.ops.library.host import ONNX
from graphkernel.passes.shape.shape_values import SOURCES, numbers_of_shapes
from kernelgen.tensor.definitions import told_symbols
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.types import Sym


def known_numbers(graph: Graph) -> frozenset[Node]:
    """Operators that need shapes only, if those follow from the inputs'; but none of ONNX's own, which may fail."""
    candidates, told = numbers_of_shapes(graph), told_symbols(graph)
    found: set[Node] = set()
    for node in graph.operators:
        if node in candidates and node.op is not ONNX:
            is_source = node.op in SOURCES
            if told.issuperset(_asked(node)) if is_source else all(_is_known(arg, found) for arg in node.args):
                found.add(node)
    return frozenset(found)


def _asked(source: Node) -> tuple[str, ...]:
    """The symbols of the shape, or of the dim, that an operator gives as numbers."""
    if source.args:
        return source.args[0].type.symbols
    value = source.attrs.get("value")
    return value.symbols if isinstance(value, Sym) else ()


def _is_known(value: Value, numbers: set[Node]) -> bool:
    return value.node in numbers or value.is_known
