"""Which integers an input may hold: as many as the tables that it is an index of have rows, read off the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graphkernel.ops.library.host import ONNX, operator_name
from graphkernel.ops.library.places import PLACES
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.pieces import SLICE, STRIDED_SLICE
from kernelgen.tensor.operators.select import EQUAL
from kernelgen.tensor.operators.shape import BROADCAST_TO, EXPAND_DIMS, FLATTEN, RESHAPE, SQUEEZE, TILE, TRANSPOSE
from kernelgen.tensor.types import evaluate, symbols_of

MOVES = frozenset({
    BROADCAST_TO, CAST, EXPAND_DIMS, FLATTEN, PLACES, RESHAPE, SLICE, SQUEEZE, STRIDED_SLICE, TILE, TRANSPOSE,
})  # fmt: skip
"""Operators that hand on the integers of their first operand."""
MOVES_OF_ONNX = frozenset({
    "Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Unsqueeze", TRANSPOSE.onnx,
})  # fmt: skip


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
        if node.op is GATHER:
            table, index = node.args
            rows = table.type.shape[node.attrs.int("axis", 0)]
            if set(symbols_of([rows])) <= set(symbols):
                yield index, evaluate(rows, symbols)
        elif node.op is EQUAL:  # of one-hot vectors: each number that there is has a place
            for index, known in (node.args, node.args[::-1]):
                if known.constant is not None and known.constant.size > 1 and known.type.dtype.is_integer:
                    yield index, int(known.constant.max()) + 1


def _source(value: Value) -> Value:
    """Where the integers come from, through operators that only move them."""
    while value.node.args and _moves(value.node):
        value = value.node.args[0]
    return value


def _moves(node: Node) -> bool:
    return node.op in MOVES or (node.op is ONNX and operator_name(node) in MOVES_OF_ONNX)
