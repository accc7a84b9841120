"""Inputs that are indices: ids in and out of range, row starts and columns of CSR matrices that fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np

from kernelgen.composite.axes import normal_axis
from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.element_reads import element_reads
from kernelgen.composite.vocabulary import by_name, facts, names_of
from kernelgen.semantics.algebra import Array
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic

TOLERANT = frozenset(facts(lambda op: op.traits.skips_outside))
"""Operators that are also given ids out of range: a tenth too many, above and below."""

CSR_OPERANDS = by_name(
    {(basic.CSR_MUL, basic.CSR_DIV, basic.CSR_MV, basic.CSR_MM): 3, (basic.CSR_GATHER, basic.CSR_REDUCE_SUM): 2}
)
"""CSR operator -> the operand that tells what the columns index; operands 0 and 1 are row starts and columns."""

VALUE_KEEPING = names_of(basic.CAST, basic.RESHAPE, basic.EXPAND_DIMS, basic.TRANSPOSE, basic.BROADCAST_TO)


def index_inputs(desc: KernelDesc, random: np.random.Generator) -> dict[str, Array]:
    """Input -> its array, for the inputs of a description without symbols that operators use as indices."""
    inputs = {t.name: t for t in desc.inputs}
    producers = {t.name: op for op in desc.ops for t in op.outputs}
    ranges: dict[str, Array] = {}
    found: dict[str, Array] = {}
    for op in desc.ops:
        for place, bounds in _index_bounds(op):
            for name in _sources(op.inputs[place].name, producers):
                ranges[name] = _tightest(bounds, ranges.get(name), direct=name == op.inputs[place].name)
        for place, array in _row_arrays(op, random):
            for name in _sources(op.inputs[place].name, producers):
                found.setdefault(name, array)
    drawn = {name: _ids(inputs[name], bounds, random) for name, bounds in ranges.items() if name in inputs}
    shaped = {name: _fitted(array, inputs[name]) for name, array in found.items() if name in inputs}
    return drawn | shaped


def _index_bounds(op: OpDesc) -> Iterator[tuple[int, Array]]:
    """(operand, ``[[least, most + 1]]`` of its ids; one row per coordinate where the last dim holds coordinates)."""
    if op.name in CSR_OPERANDS and op.name != basic.CSR_REDUCE_SUM.name:
        yield 1, np.asarray([[0, _columns(op)]])
    if op.declared is not None and op.declared.element is not None:
        for place, extent in element_reads(op, op.declared.element).limits:
            yield place, _around(np.asarray([extent]))
    if op.name not in INDEX_OPERANDS:
        return
    extents = np.asarray(PLACES[op.name](op))
    exact = np.stack([np.zeros_like(extents), extents], -1)
    yield INDEX_OPERANDS[op.name], _around(extents) if op.name in TOLERANT else exact


def _around(extents: Array) -> Array:
    """Bounds of ids that may also lie outside."""
    slack = np.maximum(1, extents // 10)
    return np.stack([-slack, extents + slack], -1)


def _columns(op: OpDesc) -> int:
    """The columns of a CSR matrix: rows of what it is multiplied with, else columns of what it is laid over."""
    if "dense_shape" in op.attrs:
        return op.attrs.ints("dense_shape")[1]
    shape = op.inputs[CSR_OPERANDS[op.name]].shape
    return int(shape[0] if op.name in names_of(basic.CSR_MV, basic.CSR_MM) or len(shape) == 1 else shape[1])  # pyright: ignore[reportArgumentType]


def _shape(op: OpDesc) -> list[int]:
    return [int(dim) for dim in op.inputs[0].shape]  # pyright: ignore[reportArgumentType]  # specialised


def _rows(op: OpDesc) -> list[int]:
    return [_shape(op)[normal_axis(op.attrs.int("axis", 0), len(op.inputs[0].shape))]]


def _coordinates(op: OpDesc) -> list[int]:
    return _shape(op)[: int(op.inputs[1].shape[-1])]  # pyright: ignore[reportArgumentType]


def _segments(op: OpDesc) -> list[int]:
    return [int(op.output.shape[0])]  # pyright: ignore[reportArgumentType]


def _depth(op: OpDesc) -> list[int]:
    return [op.attrs.int("depth", 2)]


_PLACES: Mapping[Operator, Callable[[OpDesc], list[int]]] = {
    basic.GATHER: _rows, basic.GATHER_ND: _coordinates, basic.TENSOR_SCATTER_ADD: _coordinates,
    basic.UNSORTED_SEGMENT_SUM: _segments, basic.ONE_HOT: _depth,
}  # fmt: skip
PLACES = by_name({**_PLACES})
"""Operator -> how many places its ids can name, for every coordinate."""

INDEX_OPERANDS = by_name({op: op.indices[0] for op in _PLACES})
"""Operator -> the operand that holds ids."""


def _row_arrays(op: OpDesc, random: np.random.Generator) -> Iterator[tuple[int, Array]]:
    """Row starts of CSR operators, sorted row numbers of COO2CSR."""
    if op.name in CSR_OPERANDS or op.name == basic.CSR_TO_COO.name:
        rows = int(op.inputs[0].shape[0]) - 1  # pyright: ignore[reportArgumentType]
        count = op.outputs[0].shape[0] if op.name == basic.CSR_TO_COO.name else op.inputs[1].shape[0]
        sizes = random.multinomial(int(count), np.full(rows, 1 / rows)) if rows else np.zeros(0, np.int64)  # pyright: ignore[reportArgumentType]
        yield 0, np.concatenate([[0], np.cumsum(sizes)])
    elif op.name == basic.COO_TO_CSR.name:
        height = int(op.outputs[0].shape[0]) - 1  # pyright: ignore[reportArgumentType]
        yield 0, np.sort(random.integers(0, max(height, 1), [int(d) for d in op.inputs[0].shape]))  # pyright: ignore[reportArgumentType]


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


def _ids(tensor: TensorDesc, bounds: Array, random: np.random.Generator) -> Array:
    shape = [int(dim) for dim in tensor.shape]  # pyright: ignore[reportArgumentType]  # specialised
    least = np.zeros_like(bounds[:, 0]) if tensor.dtype.name.startswith("u") else bounds[:, 0]
    low, high = (least, np.maximum(bounds[:, 1], least + 1)) if prod(shape) else (0, 1)
    return random.integers(low, high, shape).astype(tensor.dtype.numpy)


def _fitted(array: Array, tensor: TensorDesc) -> Array:
    return array.astype(tensor.dtype.numpy).reshape([int(dim) for dim in tensor.shape])  # pyright: ignore[reportArgumentType]


def _sources(name: str, producers: Mapping[str, OpDesc]) -> Iterator[str]:
    """The kernel inputs that a tensor is computed from, through operators that keep values."""
    op = producers.get(name)
    if op is None:
        yield name
    elif op.name in VALUE_KEEPING:
        yield from _sources(op.inputs[0].name, producers)
