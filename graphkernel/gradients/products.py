"""Gradients of matrix products, convolutions, factorisations and triangular systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.expanders.means import summed_to
from graphkernel.gradients.base import Application, Cotangents, gradient
from graphkernel.ops import Tensor
from graphkernel.ops.library import conv_gradients, linear_algebra
from graphkernel.ops.library.grouped_products import GROUPED_MATMUL, INNER, ROWS
from graphkernel.ops.library.linear_algebra import SOLVE_TRIANGULAR
from graphkernel.ops.tensor.apply import apply
from kernelgen.tensor.operators import matmul
from kernelgen.tensor.operators.nn import CONV2D, NHWC


def _product(of: Application) -> Cotangents:
    """dy @ b.T; a.T @ dy; with a bias also the sum of dy over the rows"""
    (a, b, *bias), dy = of.operands, of.dy
    left, right = of.attrs.bool("transpose_a", False), of.attrs.bool("transpose_b", False)
    da = ops.matmul(b, dy, right, True) if left else ops.matmul(dy, b, False, not right)
    db = ops.matmul(dy, a, True, left) if right else ops.matmul(a, dy, not left, False)
    more = [ops.cast(summed_to(dy, x.shape), x.dtype) if x.dtype != dy.dtype else summed_to(dy, x.shape) for x in bias]
    return [summed_to(da, a.shape), summed_to(db, b.shape), *more]


MATMUL = gradient(matmul.MATMUL)(_product)
BATCH_MATMUL = gradient(matmul.BATCH_MATMUL)(_product)


@gradient(GROUPED_MATMUL)
def grouped_matmul(of: Application) -> Cotangents:
    """GroupedMatmul of dy with each operand transposed, over rows where it was over the inner extent and the other way round"""
    (x, weight, groups), dy = of.operands, of.dy
    left, right = of.attrs.bool("transpose_a", False), of.attrs.bool("transpose_b", False)
    if of.attrs.int("group_type", ROWS) == ROWS:
        dx = apply(GROUPED_MATMUL, dy, weight, groups, group_type=ROWS, transpose_b=not right)
        dweight = apply(GROUPED_MATMUL, x, dy, groups, group_type=INNER, transpose_a=not left)
        return [_turned(dx, left), _turned(dweight, right), None]
    dx = apply(GROUPED_MATMUL, weight, dy, groups, group_type=ROWS, transpose_a=right, transpose_b=True)
    dweight = apply(GROUPED_MATMUL, x, dy, groups, group_type=ROWS, transpose_a=not left)
    return [_turned(dx, not left), _turned(dweight, right), None]


def _turned(x: Tensor, swap: bool) -> Tensor:
    """With the last two axes swapped, or as it is."""
    return ops.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)) if swap else x


PLANES, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""From NHWC to NCHW, and back."""


@gradient(CONV2D)
def conv2d(of: Application) -> Cotangents:
    """Conv2DBackpropInput; Conv2DBackpropFilter"""
    (x, weight), window, dy = of.operands, _window(of), of.dy
    last = window.pop("format", "NCHW") == NHWC
    if last:
        x, dy, weight = _in_planes(x, dy, weight)
    to_x = ops.conv2d_backprop_input(dy, weight, input_size=x.shape, **window)
    to_weight = ops.conv2d_backprop_filter(dy, x, filter_size=weight.shape, **window)
    return [ops.transpose(to_x, LAST), ops.transpose(to_weight, (2, 3, 1, 0))] if last else [to_x, to_weight]


@gradient(conv_gradients.CONV2D_BACKPROP_INPUT)
def conv2d_backprop_input(of: Application) -> Cotangents:
    """Conv2D; Conv2DBackpropFilter"""
    (dy, weight), window = of.operands, _window(of)
    return [
        ops.conv2d(of.dy, weight, **window),
        ops.conv2d_backprop_filter(dy, of.dy, filter_size=weight.shape, **window),
    ]


@gradient(conv_gradients.CONV2D_BACKPROP_FILTER)
def conv2d_backprop_filter(of: Application) -> Cotangents:
    """Conv2D; Conv2DBackpropInput"""
    (dy, x), window, weight = of.operands, _window(of), of.dy
    last = window.pop("format", "NCHW") == NHWC
    if last:
        x, dy, weight = _in_planes(x, dy, weight)
    found = [ops.conv2d(x, weight, **window), ops.conv2d_backprop_input(dy, weight, input_size=x.shape, **window)]
    return [ops.transpose(each, LAST) for each in found] if last else found


def _in_planes(x: Tensor, dy: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Images of NHWC in NCHW, a weight of HWIO in OIHW."""
    return ops.transpose(x, PLANES), ops.transpose(dy, PLANES), ops.transpose(weight, (3, 2, 0, 1))


def _window(of: Application) -> dict[str, Any]:  # as the convolution has them
    return {name: of.attrs[name] for name in CONV2D.attribute_names if name in of.attrs}


def _transposed_product(a: Tensor, b: Tensor) -> Tensor:
    return ops.matmul(a, b, False, True)


def _triangle(x: Tensor, *, lower: bool, diagonal: bool) -> Tensor | None:
    """x with zeros outside of a triangle; None where its size is not known."""
    size = x.shape[-1]
    if not isinstance(size, int):
        return None
    inside = np.tri(size, k=0 if diagonal else -1, dtype=bool)
    return ops.select(Tensor(x.builder.constant(inside if lower else inside.T), x.builder), x, 0)


@gradient(SOLVE_TRIANGULAR)
def solve_triangular(of: Application) -> Cotangents | Declined:
    """Of the right sides: SolveTriangular of dy by the transpose; of the matrix: minus its product with y, in the triangle"""
    (a, _), (y,) = of.operands, of.results
    transposed = of.attrs.bool("trans", False)
    db = apply(SOLVE_TRIANGULAR, a, of.dy, **of.attrs.with_(trans=not transposed))
    product = _transposed_product(y, db) if transposed else _transposed_product(db, y)
    unit = of.attrs.bool("unit_diagonal", False)
    da = _triangle(-product, lower=of.attrs.bool("lower", False), diagonal=not unit)
    return Declined("the size of its matrices must be known") if da is None else [da, db]


@gradient(linear_algebra.LU)
def lu(of: Application) -> Cotangents | Declined:
    """P.T L^-T (tril(L.T dL, -1) + triu(dU U.T)) U^-T"""
    factors, order = of.results
    size = factors.shape[-1]
    if not isinstance(size, int):
        return Declined("the size of its matrices must be known")
    unit = Tensor(factors.builder.constant(np.eye(size), factors.dtype), factors.builder)
    lower, upper = _parts(factors, size)
    by_lower, by_upper = _parts(of.dy, size)
    below, _ = _parts(ops.matmul(lower + unit, by_lower, True, False), size)
    _, above = _parts(_transposed_product(by_upper, upper), size)
    left = apply(SOLVE_TRIANGULAR, factors, below + above, lower=True, trans=True, unit_diagonal=True)
    right = apply(SOLVE_TRIANGULAR, factors, _turned(left, True), lower=False)
    one, zero = (np.asarray(value, factors.dtype.numpy) for value in (1, 0))
    rows = ops.one_hot(order, size, one, zero)
    return [ops.matmul(rows, _turned(right, True), True, False)]


def _parts(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """What lies below the diagonal, and the rest."""
    below = Tensor(x.builder.constant(np.tri(size, k=-1, dtype=bool)), x.builder)
    return ops.select(below, x, 0), ops.select(below, 0, x)
