"""Gradients of reductions and running sums.

What attains an extreme several times shares its gradient, as in torch's ``amax``; where an operator also says at which
index it found it, all goes there. The products are right where elements are 0, but their second derivatives there are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel import ops
from graphkernel.expanders.means import count_of
from graphkernel.gradients.base import Application, Cotangents, flat, gradient
from graphkernel.ops import Tensor
from graphkernel.ops.composite import extremes, normalize, sums
from graphkernel.ops.composite.extremes import value_attrs
from graphkernel.ops.tensor.apply import apply
from kernelgen.tensor.operators import reduce, scan, status
from kernelgen.tensor.operators.indexing import ONE_HOT
from kernelgen.tensor.operators.scan import CUM_PROD
from kernelgen.tensor.operators.type_rules import axes_of, reduced_shape
from kernelgen.tensor.types import Shape

EQUAL_COUNT = flat(sums.EQUAL_COUNT, "a count")
ELEM_ANY = flat(status.ELEM_ANY, "a flag")
FLOAT_STATUS = flat(status.FLOAT_STATUS, "a flag")


def _axes(of: Application) -> tuple[int, ...]:
    return axes_of(of.attrs.ints("axis", ()), of.operands[0].ndim)


def _kept(of: Application, axes: Sequence[int]) -> Shape:
    """The operand's shape in which reduced axes have extent 1."""
    return reduced_shape(of.operands[0].shape, axes, keep_dims=True)


def spread(x: Tensor, shape: Shape) -> Tensor:
    """A tensor whose reduced axes have extent 1, repeated along them."""
    return x if x.shape == shape else ops.broadcast_to(x, shape)


def _restored(x: Tensor, of: Application, axes: Sequence[int]) -> Tensor:
    """A result or its cotangent with reduced axes of extent 1."""
    return x if x.shape == _kept(of, axes) else ops.reshape(x, _kept(of, axes))


@gradient(reduce.REDUCE_SUM)
def reduce_sum(of: Application) -> Cotangents:
    """dy along the reduced axes"""
    return [spread(_restored(of.dy, of, _axes(of)), of.operands[0].shape)]


def _mean(of: Application) -> Cotangents:
    """dy / count along the reduced axes"""
    (x,), axes = of.operands, _axes(of)
    count = count_of(x, axes)
    share = of.dy * (1 / count) if isinstance(count, float) and count else of.dy / count
    return [spread(_restored(share, of, axes), x.shape)]


REDUCE_MEAN = gradient(normalize.REDUCE_MEAN)(_mean)
MEAN_EXT = gradient(normalize.MEAN_EXT)(_mean)


def _extreme(of: Application) -> Cotangents:
    """dy shared by the elements that are the extreme"""
    (x,), axes = of.operands, _axes(of)
    chosen = x == _restored(of.results[0], of, axes)
    number = ops.reduce_sum(ops.cast(chosen, x.dtype), axes, keep_dims=True) if axes else 1.0
    return [ops.select(chosen, _restored(of.dy, of, axes) / number, 0)]


REDUCE_MAX = gradient(reduce.REDUCE_MAX)(_extreme)
REDUCE_MIN = gradient(reduce.REDUCE_MIN)(_extreme)


def _extreme_at_index(of: Application) -> Cotangents:
    """dy where the index is"""
    (x,), axes = of.operands, value_attrs(of.attrs).ints("axis")
    (axis,) = axes_of(axes, x.ndim)
    index = ops.reshape(of.results[0], (*x.shape[:axis], *x.shape[axis + 1 :]))
    on, off = (Tensor(x.builder.constant(value, x.dtype), x.builder) for value in (1, 0))
    here = apply(ONE_HOT, index, on, off, depth=x.shape[axis], axis=axis)
    return [here * _restored(of.cotangent(1), of, (axis,))]


ARG_MAX_WITH_VALUE = gradient(extremes.ARG_MAX_WITH_VALUE)(_extreme_at_index)
ARG_MIN_WITH_VALUE = gradient(extremes.ARG_MIN_WITH_VALUE)(_extreme_at_index)


@gradient(reduce.REDUCE_PROD)
def reduce_prod(of: Application) -> Cotangents:
    """dy * the product of the other elements"""
    (x,), axes = of.operands, _axes(of)
    if not axes:
        return [of.dy]
    zero = x == 0
    zeros = ops.reduce_sum(ops.cast(zero, x.dtype), axes, keep_dims=True)
    rest = ops.reduce_prod(ops.select(zero, 1, x), axes, keep_dims=True)
    others = ops.select(zero, ops.select(zeros == 1, rest, 0), ops.select(zeros == 0, rest / x, 0))
    return [_restored(of.dy, of, axes) * others]


@gradient(sums.SQUARE_SUM_ALL)
def square_sum_all(of: Application) -> Cotangents:
    """2 * dy * x; 2 * dy * y"""
    return [of.cotangent(place) * (x + x) for place, x in enumerate(of.operands)]


@gradient(scan.CUM_SUM)
def cum_sum(of: Application) -> Cotangents:
    """CumSum of dy from the other end"""
    return [_from_other_end(of.dy, of)]


def _from_other_end(x: Tensor, of: Application) -> Tensor:
    exclusive, reverse = of.attrs.bool("exclusive", False), of.attrs.bool("reverse", False)
    return ops.cum_sum(x, of.attrs.int("axis"), exclusive, not reverse)


@gradient(CUM_PROD)
def cum_prod(of: Application) -> Cotangents:
    """The sum of dy * y from the other end, over x; where x is the first 0 on the way y is made without it"""
    (x,), dy = of.operands, of.dy
    zero = x == 0
    zeros = ops.cum_sum(ops.cast(zero, x.dtype), of.attrs.int("axis"), False, of.attrs.bool("reverse", False))
    first = zero & (zeros == 1)
    without = apply(CUM_PROD, ops.select(first, 1, x), **of.attrs)
    before = _from_other_end(dy * of.results[0], of) / x
    return [ops.select(zeros == 0, before, ops.select(first, _from_other_end(dy * without, of), 0))]
