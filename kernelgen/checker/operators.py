"""The terms of real operators.

Operators that move elements, and those that add and multiply them, have their numpy meaning on uint64, whose sums and
products are those of the ring; others fold or choose numbers here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from kernelgen.checker import terms
from kernelgen.checker.algebra import Array, TermAlgebra, Terms, array
from kernelgen.composite.document import Operation
from kernelgen.composite.element_reads import element_reads
from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS, scalar_rule
from kernelgen.composite.vocabulary import operator_named
from kernelgen.composite.window_shapes import pooled_dims
from kernelgen.samples.index_inputs import INDEX_OPERANDS
from kernelgen.semantics.random import philox
from kernelgen.semantics.table import MEANINGS, meaning_of
from kernelgen.tensor.dtypes import FLOAT32, FLOAT64, INT64, UINT64, DType
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.type_rules import normal_axis, reduced_axes

MOVES = frozenset({
    "Reshape", "ExpandDims", "Squeeze", "Flatten", "EquivFormat", "BroadcastTo", "Transpose", "Tile", "Concat",
    "StridedSlice", "StridedSliceV2", "Slice", "UnPadAkg", "Split",
})  # fmt: skip
"""Operators whose numpy meaning only moves elements, whatever they are."""

KNOWN_OPERANDS: Mapping[str, tuple[int, ...]] = MappingProxyType({
    **{operator.name: (place,) for operator, place in INDEX_OPERANDS.items()},
    **dict.fromkeys(("CSRMV", "CSRMM", "CSRGather", "CSRMul", "CSRDiv"), (0, 1)),
    **dict.fromkeys(("CSRReduceSum", "CSR2COO", "COO2CSR"), (0,)),
})  # fmt: skip
"""Operator -> the operands whose numbers must be known."""

SUMS_OF_PRODUCTS = frozenset({
    "MatMul", "BatchMatMul", "Conv2D", "CumSum", "CumProd", "TransData", "LayoutTransform",
    *KNOWN_OPERANDS,
}) - {"CSRMul", "CSRDiv"}  # fmt: skip
"""Operators whose numpy meaning on unsigned integers is that of the ring of terms: sums, products, and zeros around."""


class Unknown(Exception):
    """A number that must be known is not; never leaves this package."""


def real_value(op: Operation, operands: Sequence[Terms], algebra: TermAlgebra) -> list[Terms]:
    """The terms that ``algebra`` gives ``op`` on ``operands``, before they are put into the described shapes and data types."""
    rule = scalar_rule(op)
    if rule is not None:
        return [rule(algebra, operands, op)]
    if op.declared is not None:
        return [_ring_value(op, operands)]
    if op.op in REDUCTIONS:
        value = algebra.cast(operands[0], op.out.dtype)
        return [algebra.fold(REDUCTIONS[op.op], value, sorted(reduced_axes(op)))]
    if op.name in SUMS_OF_PRODUCTS:
        return [_ring_value(op, operands)]
    if op.name in MOVES:
        moved = MEANINGS[op.op]([operand.numbers for operand in operands], op)
        parts = moved if isinstance(moved, tuple) else (moved,)
        return [Terms(np.asarray(part, object), operands[0].kind) for part in parts]
    return [OTHERS[op.name](op, operands, algebra)]


def known_operands(op: Operation) -> tuple[int, ...]:
    """The operands whose numbers must be known."""
    return KNOWN_OPERANDS.get(op.name, ()) if op.declared is None else op.declared.indices


def has_real_terms(op: Operation) -> bool:
    """Whether :func:`real_value` knows the operator."""
    if op.declared is not None:
        return op.declared.scalar is not None or _moves_terms(op, op.declared)
    known = scalar_rule(op) is not None or op.op in REDUCTIONS
    return known or any(op.name in table for table in (MOVES, SUMS_OF_PRODUCTS, OTHERS))


def _moves_terms(op: Operation, operator: Operator) -> bool:
    """Whether it only moves elements, to places that are numbers of its operands: terms are no numbers to compute with."""
    rule = operator.element
    return rule is not None and operator.traits.moves and element_reads(op, rule).is_direct


def _ring_value(op: Operation, operands: Sequence[Terms]) -> Terms:
    """The meaning of the operator in uint64; operands that must be known are what they are."""
    places = known_operands(op)
    kinds = [INT64 if place in places else UINT64 for place in range(len(operands))]
    integral = replace(
        op,
        args=tuple(replace(tensor, dtype=kind) for tensor, kind in zip(op.args, kinds, strict=True)),
        outs=tuple(replace(tensor, dtype=UINT64) for tensor in op.outs),
    )
    arrays = [
        _known(operand) if place in places else operand.numbers.astype(np.uint64)
        for place, operand in enumerate(operands)
    ]
    meaning = meaning_of(integral)
    assert meaning is not None, f"{op.name} has a meaning: has_real_terms asked"
    found = np.asarray(meaning(arrays, integral))
    kind = next((operand.kind for place, operand in enumerate(operands) if place not in places), INT64)
    return Terms(array([int(number) & terms.TOP for number in found.reshape(-1)], found.shape), kind)


def _known(operand: Terms) -> Array:
    numbers = [terms.known(int(number)) for number in operand.numbers.reshape(-1)]
    if None in numbers:
        raise Unknown
    return np.asarray(numbers, np.int64).reshape(operand.numbers.shape)


# ---------------------------------------------------------------- operators with rules of their own


def _padded(op: Operation, operands: Sequence[Terms], algebra: TermAlgebra) -> Terms:
    """PadAkg: constants around the elements."""
    widths = list(zip(op.attrs.ints("head"), op.attrs.ints("tail"), strict=True))
    constant = algebra.literal(op.attrs.number("pad_val", 0.0), operands[0].kind).numbers.item()
    return replace(operands[0], numbers=_surrounded(operands[0].numbers, widths, constant))


def _surrounded(numbers: Array, widths: Sequence[tuple[int, int]], constant: int) -> Array:
    shape = [before + extent + after for extent, (before, after) in zip(numbers.shape, widths, strict=True)]
    made = np.full(shape, constant, object)
    made[tuple(slice(before, before + n) for n, (before, _) in zip(numbers.shape, widths, strict=True))] = numbers
    return made


def _positive(op: Operation, operands: Sequence[Terms], algebra: TermAlgebra) -> Terms:
    """ElemAny and ElemAll: whether any (all) elements are greater than 0."""
    found = algebra.call("greater", operands[0], 0)
    function = "logical_or" if op.name == "ElemAny" else "logical_and"
    return algebra.fold(function, found, range(found.numbers.ndim))


def _extreme(op: Operation, operands: Sequence[Terms], algebra: TermAlgebra) -> Terms:
    """Argmax and Argmin: the first position of the extreme in the order of numbers."""
    (value,) = operands
    ranks = np.frompyfunc(lambda number: terms.rank(value.kind, number), 1, 1)(value.numbers)
    axis = normal_axis(op.attrs.ints("axis", (-1,))[0], value.numbers.ndim)
    found = np.asarray((np.argmax if op.name == "Argmax" else np.argmin)(ranks, axis))
    return Terms(array([int(place) for place in found.reshape(-1)], found.shape), op.out.dtype)


def _sparse_elementwise(op: Operation, operands: Sequence[Terms], algebra: TermAlgebra) -> Terms:
    """CSRMul and CSRDiv: the stored values times (over) the dense elements at their places."""
    rows, columns, values, dense = operands
    met = _ring_value(replace(op, name="CSRGather", args=(*op.args[:2], op.args[3])), (rows, columns, dense))
    return ELEMENTWISE[operator_named("Mul" if op.name == "CSRMul" else "Div")](algebra, [values, met], op)


def _pooled(op: Operation, operands: Sequence[Terms], algebra: TermAlgebra) -> Terms:
    """Pool2D: windows folded by maximum, or added up and divided by their size, zeros around included."""
    dims, is_max = pooled_dims(op), op.attrs.str("pool_type") == "max"
    (image,) = operands
    if not is_max:
        image = algebra.cast(image, FLOAT64 if image.kind == FLOAT64 else FLOAT32)
    function = "maximum" if is_max else "add"
    numbers = image.numbers
    if op.attrs.bool("global", False):
        total = algebra.fold(function, image, dims)
        return total if is_max else algebra.call("div", total, float(math.prod(numbers.shape[d] for d in dims)))
    size, strides = op.attrs.ints("kernel_size"), op.attrs.ints("strides")
    head = op.attrs.ints("pad", (0, 0, 0, 0))[:2]
    counts = [int(op.out.shape[d]) for d in dims]  # pyright: ignore[reportArgumentType]  # specialised
    widths = [(0, 0)] * numbers.ndim
    for d, before, count, stride, length in zip(dims, head, counts, strides, size, strict=True):
        widths[d] = (before, max(0, (count - 1) * stride + length - numbers.shape[d] - before))
    numbers = _surrounded(numbers, widths, terms.neutral(function, image.kind))
    windows: list[Array] = []
    for y, x in np.ndindex(*size):
        place = [slice(None)] * numbers.ndim
        for d, first, count, stride in zip(dims, (y, x), counts, strides, strict=True):
            place[d] = slice(first, first + (count - 1) * stride + 1, stride)
        windows.append(numbers[tuple(place)])
    stacked = Terms(np.stack(windows), image.kind)
    total = Terms(algebra.fold(function, stacked, (0,)).numbers[0], image.kind)
    return total if is_max else algebra.call("div", total, float(len(windows)))


def _standard_normal(op: Operation, operands: Sequence[Terms], algebra: TermAlgebra) -> Terms:
    """StandardNormal: ``sqrt(-2 ln u) cos(2 pi v)`` of Philox's words, see :mod:`kernelgen.semantics.random`."""
    shape = tuple(int(dim) for dim in op.out.shape)  # pyright: ignore[reportArgumentType]  # specialised
    first, second, _, _ = philox(np.arange(math.prod(shape), dtype=np.uint64), op.attrs.int("seed", 0))
    wide = FLOAT64 if op.out.dtype == FLOAT64 else FLOAT32
    u, v = (
        algebra.call("mul", _fraction(words, offset, shape, wide), 2.0**-24)
        for words, offset in ((first, 1), (second, 0))
    )
    radius = algebra.call("sqrt", algebra.call("mul", algebra.call("log", u), -2.0))
    return algebra.call("mul", radius, algebra.call("cos", algebra.call("mul", v, 2 * math.pi)))


def _fraction(words: Array, offset: int, shape: tuple[int, ...], wide: DType) -> Terms:
    return Terms(array([(int(word) >> 8) + offset for word in words], shape), wide)


OTHERS: Mapping[str, Callable[[Operation, Sequence[Terms], TermAlgebra], Terms]] = MappingProxyType({
    "PadAkg": _padded, "ElemAny": _positive, "ElemAll": _positive, "Argmax": _extreme, "Argmin": _extreme,
    "CSRMul": _sparse_elementwise, "CSRDiv": _sparse_elementwise, "Pool2D": _pooled, "StandardNormal": _standard_normal,
})  # fmt: skip

ORDERED = frozenset({"Argmax", "Argmin"})
"""Operators that ask which number is the greater one."""
