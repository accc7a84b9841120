"""Operators that fold many elements into one, in terms of :mod:`kernelgen.enclosure.sums`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from kernelgen.composite.vocabulary import by_operator
from kernelgen.enclosure.arithmetic import add, divide, multiply, subtract
from kernelgen.enclosure.complexes import joined, parts_of
from kernelgen.enclosure.integers import folded_integers, summed_integers
from kernelgen.enclosure.interval import Array, Interval, forgotten
from kernelgen.enclosure.sums import multiplied, product_of, summed
from kernelgen.errors import UnsupportedError
from kernelgen.semantics.table import MEANINGS
from kernelgen.tensor.dtypes import COMPLEX64, FLOAT32, FLOAT64, Category, DType
from kernelgen.tensor.operator import Application, Applied, giving
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.operators.type_rules import normal_axis, reduced_axes

Rule = Callable[[Sequence[Interval], Application], Interval]


def reduction(operands: Sequence[Interval], node: Application) -> Interval:
    """ReduceSum, ReduceMax, ReduceMin, ReduceProd, ReduceAll, ReduceAny."""
    (x,), kind = operands, node.out.dtype
    if kind.category is Category.COMPLEX:
        return _by_parts(reduction, operands, node)
    if node.op in frozenset({basic.REDUCE_SUM, basic.REDUCE_PROD}) and kind.is_float:
        return _arithmetic(x, node)
    if node.op is basic.REDUCE_SUM:
        return summed_integers(lambda bound: _folded(bound, node), x, kind)
    if node.op is basic.REDUCE_PROD:
        return folded_integers(_folded(x.low, node), _some(~x.points, node), kind)
    found = x.map(lambda bound: _folded(bound, node))
    return found if x.is_exact or x.low.dtype.kind != "f" else forgotten(found, _some(x.unknown, node))


def _arithmetic(x: Interval, node: Application) -> Interval:
    kind, axes = node.out.dtype, _axes(node)
    terms = prod(x.low.shape[axis] for axis in axes)
    keep = node.attrs.bool("keep_dims", False)
    if node.op is not basic.REDUCE_SUM:
        return product_of(x, lambda value: np.multiply.reduce(value, axes, keepdims=keep), kind, terms)
    return summed(x, lambda value: np.asarray(value.sum(axes, keepdims=keep)), kind, terms)


def _folded(bound: Array, node: Application) -> Array:
    """Without arithmetic: the meaning itself, in the data type of the bounds."""
    kept = giving(node, FLOAT64) if bound.dtype == np.float64 else node
    return np.asarray(MEANINGS[node.op]([bound], kept))


def _some(where: Array, node: Application) -> Array:
    return np.asarray(np.logical_or.reduce(where, _axes(node), keepdims=node.attrs.bool("keep_dims", False)))


def _axes(node: Application) -> tuple[int, ...]:
    return reduced_axes(node)


def scan(operands: Sequence[Interval], node: Application) -> Interval:
    """CumSum and CumProd."""
    (x,), kind = operands, node.out.dtype
    if kind.category is Category.COMPLEX:
        return _by_parts(scan, operands, node)
    if not kind.is_float and node.op is basic.CUM_SUM:
        return summed_integers(lambda bound: _folded(bound, node), x, kind)
    if not kind.is_float:
        doubtful = np.isnan(_folded(np.where(x.points, 1.0, np.nan), node))
        return folded_integers(_folded(x.low, node), doubtful, kind)
    terms = x.low.shape[normal_axis(node.attrs.ints("axis", (0,))[0], x.low.ndim)] if x.low.ndim else 1
    wide = giving(node, FLOAT64)
    fold = product_of if node.op is basic.CUM_PROD else summed
    return fold(x, lambda value: np.asarray(MEANINGS[node.op]([value], wide)), kind, terms)


def position(operands: Sequence[Interval], node: Application) -> Interval:
    """Argmax and Argmin: any place whose range reaches the extreme may be found."""
    (x,) = operands
    if x.is_exact:
        return x.map(lambda bound: np.asarray(MEANINGS[node.op]([bound], node)))
    axis, x = normal_axis(node.attrs.ints("axis", (-1,))[0], x.low.ndim), x.map(lambda bound: bound.astype(np.float64))
    low, high = (x.low, x.high) if node.op is basic.ARGMAX else (-x.high, -x.low)
    perhaps = ~(high < low.max(axis, keepdims=True))
    last = perhaps.shape[axis] - 1 - np.argmax(np.flip(perhaps, axis), axis)
    return Interval(np.argmax(perhaps, axis), last)


def matrix_product(operands: Sequence[Interval], node: Application) -> Interval:
    """MatMul, BatchMatMul, Conv2D, with what is added to the product, CSRMV and CSRMM."""
    sparse = node.op in frozenset({basic.CSR_MV, basic.CSR_MM})
    places = (2, 3) if sparse else (0, 1)
    x, y = (operands[place] for place in places)
    plain = node if sparse else Applied(node.op, node.args[:2], node.outs, node.attrs)
    kind = node.out.dtype

    def product(left: Array, right: Array) -> Array:
        given = [*(o.low for o in operands[:2]), left, right] if sparse else [left, right]
        return np.asarray(MEANINGS[node.op](given, plain))

    if not (kind.is_float or kind.category is Category.COMPLEX):
        found = np.asarray(MEANINGS[node.op]([o.low for o in operands], node))
        if all(o.is_exact for o in operands):
            return Interval.exact(found)
        ones = [np.ones(each.low.shape, np.int64) for each in (x, y)]
        doubts = product(_doubts(x), ones[1]) + product(ones[0], _doubts(y))
        added = () if sparse else operands[2:]
        return folded_integers(found, sum(map(_doubts, added), doubts) > 0, kind)
    terms = np.maximum(product(np.ones(x.low.shape), np.ones(y.low.shape)), 1.0)
    if kind.category is Category.COMPLEX:
        return _complex_product(operands, places, lambda a, b, half: multiplied(a, b, product, half, terms), node)
    found = multiplied(x, y, product, kind, terms)
    return found if sparse or len(operands) == 2 else add(found, operands[2], kind)


def _doubts(value: Interval) -> Array:
    """1 for each element that is not exact."""
    return (~value.points).astype(np.int64)


def gathered_sum(operands: Sequence[Interval], node: Application) -> Interval:
    """UnsortedSegmentSum, TensorScatterAdd and CSRReduceSum: sums whose terms are chosen by indices."""
    kind = node.out.dtype
    if kind.category is Category.COMPLEX:
        return _by_parts(gathered_sum, operands, node)
    places = by_operator(
        {basic.UNSORTED_SEGMENT_SUM: (0,), basic.TENSOR_SCATTER_ADD: (0, 2), basic.CSR_REDUCE_SUM: (2,)}
    )[node.op]
    flat = np.concatenate([operands[place].low.ravel() for place in places])
    high = np.concatenate([operands[place].high.ravel() for place in places])
    exact = all(operands[place].is_exact for place in places)

    def add_up(terms: Array) -> Array:
        given, start = [o.low for o in operands], 0
        for place in places:
            size = operands[place].low.size
            given[place] = terms[start : start + size].reshape(operands[place].low.shape)
            start += size
        return np.asarray(MEANINGS[node.op](given, node if terms.dtype != np.float64 else giving(node, FLOAT64)))

    if not kind.is_float:
        doubts = np.concatenate([_doubts(operands[place]).ravel() for place in places])
        return folded_integers(add_up(flat), add_up(doubts.astype(np.float64)) > 0, kind)
    terms = np.maximum(add_up(np.ones_like(flat)), 1.0)
    return summed(Interval.exact(flat) if exact else Interval(flat, high), add_up, kind, terms)


def sparse_elementwise(operands: Sequence[Interval], node: Application) -> Interval:
    """CSRMul and CSRDiv: the stored values times (over) the dense elements at their places."""
    indptr, indices, values, dense = operands
    met = dense.map(lambda bound: np.asarray(MEANINGS[basic.CSR_GATHER]([indptr.low, indices.low, bound], node)))
    kind = node.out.dtype
    if not kind.is_float:
        found = np.asarray(MEANINGS[node.op]([o.low for o in operands], node))
        return folded_integers(found, ~(values.points & met.points), kind)
    return (multiply if node.op is basic.CSR_MUL else divide)(values, met, kind)


def pooled(operands: Sequence[Interval], node: Application) -> Interval:
    """Pool2D: extremes are those of the bounds, averages are sums of a window's elements."""
    (x,), kind = operands, node.out.dtype
    meaning = MEANINGS[node.op]
    if node.attrs.str("pool_type") == "max":
        found = x.map(lambda bound: np.asarray(meaning([bound], node)))
        return found if x.is_exact else forgotten(found, np.asarray(meaning([x.unknown.astype(np.float64)], node)) > 0)
    window = prod(node.attrs.ints("kernel_size", ())) or 1
    terms = x.low.size / max(prod(int(d) for d in node.out.shape), 1)  # pyright: ignore[reportArgumentType]
    return summed(x, lambda value: np.asarray(meaning([value], node)), kind, max(window, terms) + 2)


def any_positive(operands: Sequence[Interval], node: Application) -> Interval:
    """ElemAny and ElemAll."""
    (x,) = operands
    return x.map(lambda bound: np.asarray(MEANINGS[node.op]([bound], node)))


# ---------------------------------------------------------------- complex numbers


def _half(kind: DType) -> DType:
    return FLOAT32 if kind == COMPLEX64 else FLOAT64


def _by_parts(rule: Rule, operands: Sequence[Interval], node: Application) -> Interval:
    """A linear operator on the real and on the imaginary parts. Raises UnsupportedError for one that is not."""
    if node.op in frozenset({basic.REDUCE_PROD, basic.CUM_PROD, basic.REDUCE_MAX, basic.REDUCE_MIN}):
        raise UnsupportedError("unsupported-op", f"operator {node.op.name!r} has no error bound on complex numbers")
    real = giving(node, _half(node.out.dtype))
    parts = [parts_of(x) if x.low.dtype.kind == "c" else (x, x) for x in operands]
    return joined(*(rule([both[part] for both in parts], real) for part in (0, 1)))


def _complex_product(
    operands: Sequence[Interval],
    places: tuple[int, int],
    product: Callable[[Interval, Interval, DType], Interval],
    node: Application,
) -> Interval:
    (a, b), (c, d) = (parts_of(operands[place]) for place in places)
    half = _half(node.out.dtype)
    real = subtract(product(a, c, half), product(b, d, half), half)
    imaginary = add(product(a, d, half), product(b, c, half), half)
    if len(operands) == 3:
        more = parts_of(operands[2])
        real, imaginary = add(real, more[0], half), add(imaginary, more[1], half)
    return joined(real, imaginary)
