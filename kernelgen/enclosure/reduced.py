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
    fold = _fold(operands, node, 0)
    if node.op is basic.REDUCE_SUM:
        return summed_integers(fold, x, kind)
    if node.op is basic.REDUCE_PROD:
        return folded_integers(fold, operands, kind)
    found = x.map(fold)
    return found if x.is_exact or x.low.dtype.kind != "f" else forgotten(found, _some(x.unknown, node))


def _arithmetic(x: Interval, node: Application) -> Interval:
    kind, axes = node.out.dtype, reduced_axes(node)
    terms = prod(x.low.shape[axis] for axis in axes)
    keep = node.attrs.bool("keep_dims", False)
    if node.op is not basic.REDUCE_SUM:
        return product_of(x, lambda value: np.multiply.reduce(value, axes, keepdims=keep), kind, terms)
    return summed(x, lambda value: np.asarray(value.sum(axes, keepdims=keep)), kind, terms)


def _fold(operands: Sequence[Interval], node: Application, *places: int) -> Callable[..., Array]:
    """The meaning of ``node`` as a function of its operands at ``places``, in the data type of what is given."""

    def fold(*terms: Array) -> Array:
        given = [operand.low for operand in operands]
        for place, term in zip(places, terms, strict=True):
            given[place] = term
        kept = giving(node, FLOAT64) if terms[0].dtype == np.float64 else node
        return np.asarray(MEANINGS[node.op](given, kept))

    return fold


def _some(where: Array, node: Application) -> Array:
    return np.asarray(np.logical_or.reduce(where, reduced_axes(node), keepdims=node.attrs.bool("keep_dims", False)))


def scan(operands: Sequence[Interval], node: Application) -> Interval:
    """CumSum and CumProd."""
    (x,), kind = operands, node.out.dtype
    if kind.category is Category.COMPLEX:
        return _by_parts(scan, operands, node)
    fold = _fold(operands, node, 0)
    if not kind.is_float:
        return summed_integers(fold, x, kind) if node.op is basic.CUM_SUM else folded_integers(fold, operands, kind)
    terms = x.low.shape[normal_axis(node.attrs.ints("axis", (0,))[0], x.low.ndim)] if x.low.ndim else 1
    return (product_of if node.op is basic.CUM_PROD else summed)(x, fold, kind, terms)


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
    kind = node.out.dtype
    if not (kind.is_float or kind.category is Category.COMPLEX):
        terms = places if sparse else range(len(operands))
        return folded_integers(_fold(operands, node, *terms), [operands[place] for place in terms], kind)
    plain = node if sparse else Applied(node.op, node.args[:2], node.outs, node.attrs)
    product = _fold(operands if sparse else operands[:2], plain, *places)
    terms = np.maximum(product(np.ones(x.low.shape), np.ones(y.low.shape)), 1.0)
    if kind.category is Category.COMPLEX:
        return _complex_product(operands, places, lambda a, b, half: multiplied(a, b, product, half, terms), node)
    found = multiplied(x, y, product, kind, terms)
    return found if sparse or len(operands) == 2 else add(found, operands[2], kind)


def gathered_sum(operands: Sequence[Interval], node: Application) -> Interval:
    """UnsortedSegmentSum, TensorScatterAdd and CSRReduceSum: sums whose terms are chosen by indices."""
    kind = node.out.dtype
    if kind.category is Category.COMPLEX:
        return _by_parts(gathered_sum, operands, node)
    places = by_operator(
        {basic.UNSORTED_SEGMENT_SUM: (0,), basic.TENSOR_SCATTER_ADD: (0, 2), basic.CSR_REDUCE_SUM: (2,)}
    )[node.op]
    fold, terms = _fold(operands, node, *places), [operands[place] for place in places]
    if not kind.is_float:
        return folded_integers(fold, terms, kind)
    flat, high = (
        np.concatenate([end.ravel() for end in ends]) for ends in ([x.low for x in terms], [x.high for x in terms])
    )
    cuts = np.cumsum([x.low.size for x in terms])[:-1]

    def add_up(values: Array) -> Array:
        parts = np.split(values, cuts)
        return fold(*(part.reshape(x.low.shape) for part, x in zip(parts, terms, strict=True)))

    counts = np.maximum(add_up(np.ones_like(flat)), 1.0)
    exact = all(x.is_exact for x in terms)
    return summed(Interval.exact(flat) if exact else Interval(flat, high), add_up, kind, counts)


def sparse_elementwise(operands: Sequence[Interval], node: Application) -> Interval:
    """CSRMul and CSRDiv: the stored values times (over) the dense elements at their places."""
    indptr, indices, values, dense = operands
    met = dense.map(lambda bound: np.asarray(MEANINGS[basic.CSR_GATHER]([indptr.low, indices.low, bound], node)))
    kind = node.out.dtype
    if not kind.is_float:
        return folded_integers(_fold(operands, node, 2, 3), operands[2:], kind)
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
