"""Sums with something before or after: of squares, of equal elements, into another data type."""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import axes, data_type, flag
from kernelgen.tensor.operators.families import Array, array_of, declare, in_float64, widened
from kernelgen.tensor.operators.type_rules import axes_of, expect_dtype, real, reduced_shape
from kernelgen.tensor.types import Attrs, Category, DType, TensorType, dtype

Types = tuple[TensorType, ...]


def _square_sum_type(types: Types, attrs: Attrs) -> Types:
    shared = expect_dtype(real, *types)
    return (TensorType((), shared), TensorType((), shared))


def _square_sum(x: Array, y: Array, *, attrs: Attrs) -> tuple[Array, Array]:
    """(the sum of x * x, the sum of y * y), each over all elements."""
    first, second = (array_of(np.square(in_float64(operand)).sum()).astype(operand.dtype) for operand in (x, y))
    return first, second


SQUARE_SUM_ALL = declare("SquareSumAll", Kind.REDUCE, 2, _square_sum_type, _square_sum, composite=True)


def _equal_count_type(types: Types, attrs: Attrs) -> Types:
    x, y = types
    shared = expect_dtype(real, x, y)
    if x.shape != y.shape:
        raise TypeRuleError("operands must have one shape")
    return (TensorType((1,), shared),)


def _equal_count(x: Array, y: Array, *, attrs: Attrs) -> Array:
    """In how many places two tensors are equal, as one element of their data type."""
    return np.asarray([np.count_nonzero(widened(x) == widened(y))]).astype(x.dtype)


EQUAL_COUNT = declare("EqualCount", Kind.REDUCE, 2, _equal_count_type, _equal_count, commutative=True, composite=True)


def _sum_ext_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    if x.dtype.category is Category.COMPLEX:
        raise TypeRuleError(f"expects bool or real numbers, got {x.dtype}")
    result = summed_dtype(x.dtype, attrs)
    if not real(result):
        raise TypeRuleError(f"dtype must be a number, got {result}")
    axes = axes_of(attrs.ints("axis", ()), x.rank)
    return (TensorType(reduced_shape(x.shape, axes, attrs.bool("keep_dims", False)), result),)


def _sum_ext(x: Array, *, attrs: Attrs) -> Array:
    """The sum over axes (none means all) in another data type: dtype, else int64 for bool and integers."""
    result = summed_dtype(dtype(x.dtype), attrs).numpy
    exact = in_float64(x.astype(result))
    axes = axes_of(attrs.ints("axis", ()), x.ndim)
    return array_of(exact.sum(axis=axes, keepdims=attrs.bool("keep_dims", False), dtype=exact.dtype)).astype(result)


def summed_dtype(own: DType, attrs: Attrs) -> DType:
    """What SumExt adds in: the attribute dtype, else the operand's; bool and integers are added as int64."""
    if "dtype" in attrs:
        return dtype(attrs.str("dtype"))
    return dtype("int64") if own.is_integer or own.name == "bool" else own


SUM_EXT = declare(
    "SumExt",
    Kind.REDUCE,
    1,
    _sum_ext_type,
    _sum_ext,
    attributes=(axes(), flag("keep_dims"), data_type("dtype", None)),
    composite=True,
)
