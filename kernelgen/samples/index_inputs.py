"""Inputs that are indices: ids in and out of range, row starts and columns of CSR matrices that fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.element_reads import element_reads
from kernelgen.composite.vocabulary import by_operator, facts, is_declared
from kernelgen.semantics.algebra import Array
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.operators.type_rules import normal_axis

TOLERANT = frozenset(facts(lambda word: word.traits.skips_outside))
"""Operators that are also given ids out of range: a tenth too many, above and below."""

CSR_OPERANDS = by_operator(
    {(basic.CSR_MUL, basic.CSR_DIV, basic.CSR_MV, basic.CSR_MM): 3, (basic.CSR_GATHER, basic.CSR_REDUCE_SUM): 2}
)
"""CSR operator -> the operand that tells what the columns index; operands 0 and 1 are row starts and columns."""

VALUE_KEEPING = frozenset({basic.CAST, basic.RESHAPE, basic.EXPAND_DIMS, basic.TRANSPOSE, basic.BROADCAST_TO})


def index_inputs(desc: KernelDesc, random: np.random.Generator) -> dict[Value, Array]:
    """Input -> its array, for the inputs of a description without symbols that operators use as indices."""
    ranges: dict[Value, Array] = {}
    found: dict[Value, Array] = {}
    for node in desc.operators:
        for place, bounds in _index_bounds(node):
            source = _source(node.args[place])
            ranges[source] = _tightest(bounds, ranges.get(source), direct=source == node.args[place])
        for place, array in _row_arrays(node, random):
            found.setdefault(_source(node.args[place]), array)
    drawn = {value: _ids(value, bounds, random) for value, bounds in ranges.items() if value.is_parameter}
    shaped = {value: _fitted(array, value) for value, array in found.items() if value.is_parameter}
    return drawn | shaped


def _index_bounds(node: Node) -> Iterator[tuple[int, Array]]:
    """(operand, ``[[least, most + 1]]`` of its ids; one row per coordinate where the last dim holds coordinates)."""
    if node.op in CSR_OPERANDS and node.op is not basic.CSR_REDUCE_SUM:
        yield 1, np.asarray([[0, _columns(node)]])
    if is_declared(node.op) and node.op.element is not None:
        for place, extent in element_reads(node, node.op.element).limits:
            yield place, _around(np.asarray([extent]))
    if node.op not in INDEX_OPERANDS:
        return
    extents = np.asarray(PLACES[node.op](node))
    exact = np.stack([np.zeros_like(extents), extents], -1)
    yield INDEX_OPERANDS[node.op], _around(extents) if node.op in TOLERANT else exact


def _around(extents: Array) -> Array:
    """Bounds of ids that may also lie outside."""
    slack = np.maximum(1, extents // 10)
    return np.stack([-slack, extents + slack], -1)


def _columns(node: Node) -> int:
    """The columns of a CSR matrix: rows of what it is multiplied with, else columns of what it is laid over."""
    if "dense_shape" in node.attrs:
        return node.attrs.ints("dense_shape")[1]
    shape = node.args[CSR_OPERANDS[node.op]].shape
    return int(shape[0] if node.op in (basic.CSR_MV, basic.CSR_MM) or len(shape) == 1 else shape[1])  # pyright: ignore[reportArgumentType]


def _shape(node: Node) -> list[int]:
    return [int(dim) for dim in node.args[0].shape]  # pyright: ignore[reportArgumentType]  # specialised


def _rows(node: Node) -> list[int]:
    return [_shape(node)[normal_axis(node.attrs.int("axis", 0), len(node.args[0].shape))]]


def _coordinates(node: Node) -> list[int]:
    return _shape(node)[: int(node.args[1].shape[-1])]  # pyright: ignore[reportArgumentType]


def _segments(node: Node) -> list[int]:
    return [int(node.out.shape[0])]  # pyright: ignore[reportArgumentType]


def _depth(node: Node) -> list[int]:
    return [node.attrs.int("depth", 2)]


PLACES: Mapping[Operator, Callable[[Node], list[int]]] = {
    basic.GATHER: _rows, basic.GATHER_ND: _coordinates, basic.TENSOR_SCATTER_ADD: _coordinates,
    basic.UNSORTED_SEGMENT_SUM: _segments, basic.ONE_HOT: _depth,
}  # fmt: skip
"""Operator -> how many places its ids can name, for every coordinate."""

INDEX_OPERANDS = {op: op.indices[0] for op in PLACES}
"""Operator -> the operand that holds ids."""


def _row_arrays(node: Node, random: np.random.Generator) -> Iterator[tuple[int, Array]]:
    """Row starts of CSR operators, sorted row numbers of COO2CSR."""
    if node.op in CSR_OPERANDS or node.op is basic.CSR_TO_COO:
        rows = int(node.args[0].shape[0]) - 1  # pyright: ignore[reportArgumentType]
        count = node.outs[0].shape[0] if node.op is basic.CSR_TO_COO else node.args[1].shape[0]
        sizes = random.multinomial(int(count), np.full(rows, 1 / rows)) if rows else np.zeros(0, np.int64)  # pyright: ignore[reportArgumentType]
        yield 0, np.concatenate([[0], np.cumsum(sizes)])
    elif node.op is basic.COO_TO_CSR:
        height = int(node.outs[0].shape[0]) - 1  # pyright: ignore[reportArgumentType]
        yield 0, np.sort(random.integers(0, max(height, 1), [int(d) for d in node.args[0].shape]))  # pyright: ignore[reportArgumentType]


def _tightest(bounds: Array, known: Array | None, direct: bool) -> Array:
    """Bounds that fit all readers; those of single coordinates only where the input itself holds them."""
    if not direct or (known is not None and len(known) != len(bounds)):
        bounds = _common(bounds)
    if known is None:
        return bounds
    known = known if len(known) == len(bounds) else _common(known)
    return np.stack([np.maximum(bounds[:, 0], known[:, 0]), np.minimum(bounds[:, 1], known[:, 1])], -1)


def _common(bounds: Array) -> Array:
    return np.asarray([[bounds[:, 0].max(), bounds[:, 1].min()]]) if len(bounds) else np.asarray([[0, 1]])


def _ids(tensor: Value, bounds: Array, random: np.random.Generator) -> Array:
    shape = [int(dim) for dim in tensor.shape]  # pyright: ignore[reportArgumentType]  # specialised
    least = np.zeros_like(bounds[:, 0]) if tensor.dtype.name.startswith("u") else bounds[:, 0]
    low, high = (least, np.maximum(bounds[:, 1], least + 1)) if prod(shape) else (0, 1)
    return random.integers(low, high, shape).astype(tensor.dtype.numpy)


def _fitted(array: Array, tensor: Value) -> Array:
    return array.astype(tensor.dtype.numpy).reshape([int(dim) for dim in tensor.shape])  # pyright: ignore[reportArgumentType]


def _source(value: Value) -> Value:
    """What a value is computed from, through operators that keep values: an input of the kernel, if it is one."""
    while value.op in VALUE_KEEPING:
        value = value.node.args[0]
    return value
