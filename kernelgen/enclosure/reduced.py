"""Operators that fold many elements into one, in terms of :mod:`kernelgen.enclosure.sums`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from kernelgen.composite.axes import normal_axis, reduced_axes
from kernelgen.composite.description import OpDesc
from kernelgen.composite.vocabulary import by_name, names_of
from kernelgen.enclosure.arithmetic import add, divide, multiply, subtract
from kernelgen.enclosure.complexes import joined, parts_of
from kernelgen.enclosure.interval import Array, Interval, forgotten
from kernelgen.enclosure.sums import multiplied, product_of, summed
from kernelgen.errors import UnsupportedError
from kernelgen.semantics.table import MEANINGS
from kernelgen.tensor.dtypes import COMPLEX64, FLOAT32, FLOAT64, Category, DType
from kernelgen.tensor.operators import catalogue as basic

Rule = Callable[[Sequence[Interval], OpDesc], Interval]


def reduction(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """ReduceSum, ReduceMax, ReduceMin, ReduceProd, ReduceAll, ReduceAny."""
    (x,), kind = operands, op.output.dtype
    if kind.category is Category.COMPLEX:
        return _by_parts(reduction, operands, op)
    if op.name in names_of(basic.REDUCE_SUM, basic.REDUCE_PROD) and kind.is_float:
        return _arithmetic(x, op)
    found = x.map(lambda bound: _folded(bound, op))
    return found if x.is_exact or x.low.dtype.kind != "f" else forgotten(found, _some(x.unknown, op))


def _arithmetic(x: Interval, op: OpDesc) -> Interval:
    kind, axes = op.output.dtype, _axes(op)
    terms = prod(x.low.shape[axis] for axis in axes)
    keep = op.attrs.bool("keep_dims", False)
    if op.name != basic.REDUCE_SUM.name:
        return product_of(x, lambda value: np.multiply.reduce(value, axes, keepdims=keep), kind, terms)
    return summed(x, lambda value: np.asarray(value.sum(axes, keepdims=keep)), kind, terms)


def _folded(bound: Array, op: OpDesc) -> Array:
    """Without arithmetic: the meaning itself, in the data type of the bounds."""
    kept = replace(op.output, dtype=FLOAT64) if bound.dtype == np.float64 else op.output
    return np.asarray(MEANINGS[op.name]([bound], replace(op, outputs=(kept,))))


def _some(where: Array, op: OpDesc) -> Array:
    return np.asarray(np.logical_or.reduce(where, _axes(op), keepdims=op.attrs.bool("keep_dims", False)))


def _axes(op: OpDesc) -> tuple[int, ...]:
    return reduced_axes(op)


def scan(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """CumSum and CumProd."""
    (x,), kind = operands, op.output.dtype
    if kind.category is Category.COMPLEX:
        return _by_parts(scan, operands, op)
    if not kind.is_float:
        return x.map(lambda bound: np.asarray(MEANINGS[op.name]([bound], op)))
    terms = x.low.shape[normal_axis(op.attrs.ints("axis", (0,))[0], x.low.ndim)] if x.low.ndim else 1
    wide = replace(op, outputs=(replace(op.output, dtype=FLOAT64),))
    fold = product_of if op.name == basic.CUM_PROD.name else summed
    return fold(x, lambda value: np.asarray(MEANINGS[op.name]([value], wide)), kind, terms)


def position(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """Argmax and Argmin: any place whose range reaches the extreme may be found."""
    (x,) = operands
    if x.is_exact:
        return x.map(lambda bound: np.asarray(MEANINGS[op.name]([bound], op)))
    axis = normal_axis(op.attrs.ints("axis", (-1,))[0], x.low.ndim)
    low, high = (x.low, x.high) if op.name == basic.ARGMAX.name else (-x.high, -x.low)
    perhaps = ~(high < low.max(axis, keepdims=True))
    last = perhaps.shape[axis] - 1 - np.argmax(np.flip(perhaps, axis), axis)
    return Interval(np.argmax(perhaps, axis), last)


def matrix_product(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """MatMul, BatchMatMul, Conv2D, with what is added to the product, CSRMV and CSRMM."""
    sparse = op.name in names_of(basic.CSR_MV, basic.CSR_MM)
    places = (2, 3) if sparse else (0, 1)
    x, y = (operands[place] for place in places)
    plain = op if sparse else replace(op, inputs=op.inputs[:2])
    kind = op.output.dtype

    def product(left: Array, right: Array) -> Array:
        given = [*(o.low for o in operands[:2]), left, right] if sparse else [left, right]
        return np.asarray(MEANINGS[op.name](given, plain))

    if not (kind.is_float or kind.category is Category.COMPLEX):
        return Interval.exact(np.asarray(MEANINGS[op.name]([o.low for o in operands], op)))
    terms = np.maximum(product(np.ones(x.low.shape), np.ones(y.low.shape)), 1.0)
    if kind.category is Category.COMPLEX:
        return _complex_product(operands, places, lambda a, b, half: multiplied(a, b, product, half, terms), op)
    found = multiplied(x, y, product, kind, terms)
    return found if sparse or len(operands) == 2 else add(found, operands[2], kind)


def gathered_sum(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """UnsortedSegmentSum, TensorScatterAdd and CSRReduceSum: sums whose terms are chosen by indices."""
    kind = op.output.dtype
    if kind.category is Category.COMPLEX:
        return _by_parts(gathered_sum, operands, op)
    places = by_name({basic.UNSORTED_SEGMENT_SUM: (0,), basic.TENSOR_SCATTER_ADD: (0, 2), basic.CSR_REDUCE_SUM: (2,)})[
        op.name
    ]
    if not kind.is_float:
        return Interval.exact(np.asarray(MEANINGS[op.name]([o.low for o in operands], op)))
    flat = np.concatenate([operands[place].low.ravel() for place in places])
    high = np.concatenate([operands[place].high.ravel() for place in places])
    exact = all(operands[place].is_exact for place in places)

    def add_up(terms: Array) -> Array:
        given, start = [o.low for o in operands], 0
        for place in places:
            size = operands[place].low.size
            given[place] = terms[start : start + size].reshape(operands[place].low.shape)
            start += size
        return np.asarray(MEANINGS[op.name](given, op))

    terms = np.maximum(add_up(np.ones_like(flat)), 1.0)
    return summed(Interval.exact(flat) if exact else Interval(flat, high), add_up, kind, terms)


def sparse_elementwise(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """CSRMul and CSRDiv: the stored values times (over) the dense elements at their places."""
    indptr, indices, values, dense = operands
    met = dense.map(lambda bound: np.asarray(MEANINGS[basic.CSR_GATHER.name]([indptr.low, indices.low, bound], op)))
    kind = op.output.dtype
    if not kind.is_float:
        return Interval.exact(np.asarray(MEANINGS[op.name]([o.low for o in operands], op)))
    return (multiply if op.name == basic.CSR_MUL.name else divide)(values, met, kind)


def pooled(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """Pool2D: extremes are those of the bounds, averages are sums of a window's elements."""
    (x,), kind = operands, op.output.dtype
    meaning = MEANINGS[op.name]
    if op.attrs.str("pool_type") == "max":
        found = x.map(lambda bound: np.asarray(meaning([bound], op)))
        return found if x.is_exact else forgotten(found, np.asarray(meaning([x.unknown.astype(np.float64)], op)) > 0)
    window = prod(op.attrs.ints("kernel_size", ())) or 1
    terms = x.low.size / max(prod(int(d) for d in op.output.shape), 1)  # pyright: ignore[reportArgumentType]
    return summed(x, lambda value: np.asarray(meaning([value], op)), kind, max(window, terms) + 2)


def any_positive(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """ElemAny and ElemAll."""
    (x,) = operands
    return x.map(lambda bound: np.asarray(MEANINGS[op.name]([bound], op)))


# ---------------------------------------------------------------- complex numbers


def _half(kind: DType) -> DType:
    return FLOAT32 if kind == COMPLEX64 else FLOAT64


def _by_parts(rule: Rule, operands: Sequence[Interval], op: OpDesc) -> Interval:
    """A linear operator on the real and on the imaginary parts. Raises UnsupportedError for one that is not."""
    if op.name in names_of(basic.REDUCE_PROD, basic.CUM_PROD, basic.REDUCE_MAX, basic.REDUCE_MIN):
        raise UnsupportedError("unsupported-op", f"operator {op.name!r} has no error bound on complex numbers")
    real = replace(op, outputs=(replace(op.output, dtype=_half(op.output.dtype)),))
    parts = [parts_of(x) if x.low.dtype.kind == "c" else (x, x) for x in operands]
    return joined(*(rule([both[part] for both in parts], real) for part in (0, 1)))


def _complex_product(
    operands: Sequence[Interval],
    places: tuple[int, int],
    product: Callable[[Interval, Interval, DType], Interval],
    op: OpDesc,
) -> Interval:
    (a, b), (c, d) = (parts_of(operands[place]) for place in places)
    half = _half(op.output.dtype)
    real = subtract(product(a, c, half), product(b, d, half), half)
    imaginary = add(product(a, d, half), product(b, c, half), half)
    if len(operands) == 3:
        more = parts_of(operands[2])
        real, imaginary = add(real, more[0], half), add(imaginary, more[1], half)
    return joined(real, imaginary)
