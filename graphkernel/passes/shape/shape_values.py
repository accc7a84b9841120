"""Tensors that say shapes: whole numbers computed from the extents of other tensors, and nothing else.

Such a tensor is known as soon as the shapes are: its elements are dims, polynomials of symbols. Operators that only move
elements are computed by their own meaning, on arrays of dims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from graphkernel.ops.composite.split_sizes import SPLIT_WITH_SIZE
from graphkernel.ops.library.random import is_random
from kernelgen.tensor.graph import CONSTANT, Graph, Node, Value
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.creation import EXTENT, SHAPE
from kernelgen.tensor.operators.elemwise import ADD, DIV, FLOOR_DIV, MUL, NEG, SUB
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.pieces import CONCAT, SLICE, SPLIT, STRIDED_SLICE
from kernelgen.tensor.operators.reduce import REDUCE_PROD, REDUCE_SUM
from kernelgen.tensor.operators.shape import EXPAND_DIMS, FLATTEN, RESHAPE, SQUEEZE, TILE, TRANSPOSE
from kernelgen.tensor.order import is_ordered
from kernelgen.tensor.types import Dim, divide_exactly

MOVING = frozenset(
    {
        CONCAT, SPLIT, SPLIT_WITH_SIZE, RESHAPE, EXPAND_DIMS, SQUEEZE, FLATTEN, STRIDED_SLICE, SLICE, GATHER,
        TRANSPOSE, TILE,
    }
)  # fmt: skip
ARITHMETIC = frozenset({ADD, SUB, MUL, REDUCE_PROD, REDUCE_SUM, NEG})
DIVISIONS = frozenset({FLOOR_DIV, DIV})
SOURCES = frozenset({SHAPE, EXTENT})
MOST_ELEMENTS = 1024  # shapes are small, and so is what they are computed from
MOST_NUMBERS = 64  # elements of what is computed from shapes for an operator that is no shape itself

Dims = np.ndarray[Any, np.dtype[np.object_]]


def numbers_of_shapes(graph: Graph) -> frozenset[Node]:
    """The operators that compute a few numbers from shapes and constants alone: known as soon as the inputs are there."""
    found: set[Node] = set()
    for node in graph.operators:
        few = all(isinstance(type_.size, int) and type_.size <= MOST_NUMBERS for type_ in node.types)
        acts = is_random(node) or is_ordered(node)
        inside = any(arg.node in found for arg in node.args)
        only = all(arg.node in found or arg.op is CONSTANT for arg in node.args)
        if few and node.body is None and not acts and (node.op in SOURCES or (inside and only)):
            found.add(node)
    return frozenset(found)


def shape_value(value: Value) -> Dims | None:
    """The elements of a tensor that says a shape, as an array of dims; None for every other tensor."""
    known: dict[Value, Dims | None] = {}
    for node in host_nodes(value):
        known.update((result, _bounded(result, known)) for result in node.outs)
    return known[value] if value in known else _constant(value)


def _bounded(value: Value, known: Mapping[Value, Dims | None]) -> Dims | None:
    """The elements, when they are those of a shape: few, and numbers that a machine counts with."""
    if not _may_say_a_shape(value):
        return None
    try:
        found = _value(value, known)
    except ValueError:  # a polynomial with too many terms
        return None
    return found if found is not None and _counts(found.tolist()) else None


def _counts(dims: object) -> bool:
    if isinstance(dims, list):
        return all(map(_counts, cast("list[object]", dims)))
    return not isinstance(dims, int) or -(2**63) <= dims < 2**63


def _may_say_a_shape(value: Value) -> bool:
    size = value.type.size
    return value.type.dtype.is_integer and value.type.is_static and isinstance(size, int) and size <= MOST_ELEMENTS


def _value(value: Value, known: Mapping[Value, Dims | None]) -> Dims | None:
    if value.op is SHAPE:
        return _of(value.node.args[0].type.shape)
    if value.op is EXTENT:
        return np.array(value.node.attrs["value"], dtype=object)
    operands = [known[arg] if arg in known else _constant(arg) for arg in value.node.args]
    given = [operand for operand in operands if operand is not None]
    return _computed(value, given) if len(given) == len(operands) else None


def _constant(value: Value) -> Dims | None:
    return value.constant.astype(object) if _may_say_a_shape(value) and value.constant is not None else None


def extents_in(value: Value) -> Dims | None:
    """The same, and the dim that is made a number of any type."""
    return np.array(value.node.attrs["value"], dtype=object) if value.op is EXTENT else shape_value(value)


def asked_shapes(value: Value) -> tuple[Value, ...]:
    """The tensors whose shapes a tensor is computed from, each once, in the order of the operands."""
    asked = (node.args[0] for node in host_nodes(value) if node.op is SHAPE)
    return tuple(dict.fromkeys(asked))


def host_nodes(value: Value) -> tuple[Node, ...]:
    """The operators that compute a tensor that says a shape, operands first."""
    done: dict[Node, None] = {}
    waiting = [value.node] if _is_host_operator(value.node) else []
    while waiting:  # without recursion, and each node once: chains are long, and their links used twice
        node = waiting[-1]
        missing = [arg.node for arg in _asked(node) if arg.node not in done and _is_host_operator(arg.node)]
        waiting += reversed(missing)
        if not missing:
            done[waiting.pop()] = None
    return tuple(done)


def _asked(node: Node) -> tuple[Value, ...]:
    return () if node.op in SOURCES else node.args


def _is_host_operator(node: Node) -> bool:
    return node.op in SOURCES | MOVING | ARITHMETIC | DIVISIONS | {CAST}


def _computed(value: Value, operands: Sequence[Dims]) -> Dims | None:
    if value.op is CAST:
        return operands[0]
    if value.op in DIVISIONS:
        return _quotients(*operands)
    if value.op is GATHER:
        return _gathered(*operands, axis=value.node.attrs.int("axis", 0))
    found = value.op.meaning(*operands, attrs=value.node.attrs)
    result = found[value.index] if isinstance(found, tuple) else found
    return np.asarray(result, dtype=object)


def _quotients(dividends: Dims, divisors: Dims) -> Dims | None:
    """Elementwise; None when a quotient is no polynomial."""
    left, right = np.broadcast_arrays(dividends, divisors)
    quotients = [divide_exactly(a, b) if b != 0 else None for a, b in zip(left.flat, right.flat, strict=True)]
    return None if None in quotients else _of(quotients).reshape(left.shape)


def _gathered(x: Dims, indices: Dims, *, axis: int) -> Dims | None:
    """The elements at known indices; None where one is a symbol or out of range."""
    extent, wanted = x.shape[axis], cast("list[Dim]", indices.ravel().tolist())
    if not all(isinstance(index, int) and -extent <= index < extent for index in wanted):
        return None
    return np.asarray(np.take(x, indices.astype(np.int64), axis), dtype=object)  # of one element it gives that alone


def _of(dims: Sequence[Dim | None]) -> Dims:
    found = np.empty(len(dims), dtype=object)
    found[:] = dims
    return found
