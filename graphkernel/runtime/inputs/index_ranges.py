"""Which integers an input may hold: as many as the tables that it is an index of have rows, read off the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graphkernel.ops.library.host import operator_name
from kernelgen.tensor.graph import Graph, Value
from kernelgen.tensor.types import evaluate, symbols_of

MOVES = frozenset({
    "BroadcastTo", "Cast", "Expand", "ExpandDims", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "StridedSlice",
    "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators, ours and ONNX's, that hand on the integers of their first operand."""


def rows_of_tables(graph: Graph, symbols: Mapping[str, int]) -> dict[Value, int]:
    """For each input that is an index: the rows of the smallest table that it is looked up in."""
    found: dict[Value, int] = {}
    for index, rows in _lookups(graph, symbols):
        source = _source(index)
        if source in graph.inputs:
            found[source] = min(rows, found.get(source, rows))
    return found


def _lookups(graph: Graph, symbols: Mapping[str, int]) -> Iterator[tuple[Value, int]]:
    """Every index, and the extent of the axis that it points into where that is known; one-hot vectors are such axes."""
    for node in graph.operators:
        if node.op.name == "Gather":
            table, index = node.args
            rows = table.type.shape[node.attrs.int("axis", 0)]
            if set(symbols_of([rows])) <= set(symbols):
                yield index, evaluate(rows, symbols)
        elif node.op.name == "Equal":  # of one-hot vectors: each number that there is has a place
            for index, known in (node.args, node.args[::-1]):
                if known.constant is not None and known.constant.size > 1 and known.type.dtype.is_integer:
                    yield index, int(known.constant.max()) + 1


def _source(value: Value) -> Value:
    """Where the integers come from, through operators that only move them."""
    while value.node.args and operator_name(value.node) in MOVES:
        value = value.node.args[0]
    return value
