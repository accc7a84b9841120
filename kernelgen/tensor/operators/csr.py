"""Operators on matrices of which only some elements are stored: compressed sparse rows (CSR).

A matrix is three tensors: ``indptr`` (rows + 1 positions; row r is stored from ``indptr[r]`` to ``indptr[r + 1]``),
``indices`` (the column of each stored element) and values, whose first axis runs over the stored elements; further axes
belong to each element. ``dense_shape`` is the shape of the whole matrix. Sums accumulate in float64.
"""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Operator, Traits
from kernelgen.tensor.operators.attributes import dims, plain
from kernelgen.tensor.operators.families import Array, ArrayFunction, declare, in_float64, rounded
from kernelgen.tensor.operators.type_rules import (
    Accepts,
    any_dtype,
    broadcast_shapes,
    expect_dtype,
    floating,
    integer,
    number,
    shape_text,
)
from kernelgen.tensor.types import Attrs, Dim, TensorType

Types = tuple[TensorType, ...]


def _rows(indptr: TensorType) -> Dim:
    expect_dtype(integer, indptr)
    if indptr.rank != 1:
        raise TypeRuleError(f"indptr must have rank 1, got {indptr}")
    return indptr.shape[0] - 1


def _stored(indices: TensorType, values: TensorType | None = None) -> Dim:
    expect_dtype(integer, indices)
    if indices.rank != 1 or (values is not None and values.shape[:1] != indices.shape):
        raise TypeRuleError("indices must have rank 1, and values one entry for each of them")
    return indices.shape[0]


def _checked_matrix(indptr: TensorType, attrs: Attrs, *dense: TensorType) -> None:
    """dense_shape is [rows, columns, ...], and a dense operand broadcasts to it."""
    shape = attrs.dims("dense_shape")
    if len(shape) < 2 or shape[0] != _rows(indptr):
        raise TypeRuleError(f"dense_shape must be [{_rows(indptr)}, columns, ...], got {shape_text(shape)}")
    for type_ in dense:
        if type_.rank < 2 or broadcast_shapes((type_.shape[:2], shape[:2])) != shape[:2]:
            raise TypeRuleError(f"{shape_text(type_.shape)} does not broadcast to {shape_text(shape)}")


def _elementwise_type(accepts: Accepts) -> ArrayFunction:
    def rule(types: Types, attrs: Attrs) -> Types:
        indptr, indices, values, dense = types
        expect_dtype(accepts, values, dense)
        _checked_matrix(indptr, attrs, dense)
        _stored(indices, values)
        if values.shape[1:] != dense.shape[2:]:
            raise TypeRuleError("the values and the elements of the dense operand need one shape")
        return (values,)

    return rule


def _elementwise(name: str, function: np.ufunc, accepts: Accepts, doc: str, traits: Traits) -> Operator:
    compute = rounded(function)

    def meaning(indptr: Array, indices: Array, values: Array, dense: Array, *, attrs: Attrs) -> Array:
        return compute(values, _met(indptr, indices, dense, attrs))

    rule = _elementwise_type(accepts)
    return declare(
        name, Kind.OPAQUE, 4, rule, meaning, attributes=(dims("dense_shape"),), indices=(0, 1), doc=doc, traits=traits
    )


def _met(indptr: Array, indices: Array, dense: Array, attrs: Attrs) -> Array:
    """The dense elements at the stored places."""
    rows, columns = attrs.ints("dense_shape")[:2]
    return np.broadcast_to(dense, (rows, columns, *dense.shape[2:]))[row_numbers(indptr), indices]


def row_numbers(indptr: Array) -> Array:
    """The row of each stored element."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _row_sums(indptr: Array, values: Array) -> Array:
    sums = np.zeros((len(indptr) - 1, *values.shape[1:]), values.dtype)
    np.add.at(sums, row_numbers(indptr), values)
    return sums


CSR_MUL = _elementwise(
    "CSRMul",
    np.multiply,
    number,
    "(indptr, indices, values, dense): the stored values times the dense elements there.",
    Traits(factors=(2, 3)),
)
CSR_DIV = _elementwise("CSRDiv", np.divide, floating, "CSRMul with a quotient.", Traits(values_of=2))


def _gather_type(types: Types, attrs: Attrs) -> Types:
    indptr, indices, dense = types
    expect_dtype(any_dtype, dense)
    _checked_matrix(indptr, attrs, dense)
    if dense.shape != attrs.dims("dense_shape"):
        raise TypeRuleError(f"the dense operand must have the shape dense_shape, got {shape_text(dense.shape)}")
    return (TensorType((_stored(indices), *dense.shape[2:]), dense.dtype),)


def _gather(indptr: Array, indices: Array, dense: Array, *, attrs: Attrs) -> Array:
    """(indptr, indices, dense): the dense elements at the stored places."""
    return dense[row_numbers(indptr), indices]


CSR_GATHER = declare(
    "CSRGather",
    Kind.OPAQUE,
    3,
    _gather_type,
    _gather,
    attributes=(dims("dense_shape"),),
    indices=(0, 1),
    traits=Traits(moves=True, values_of=2),
)


def _reduce_type(types: Types, attrs: Attrs) -> Types:
    indptr, indices, values = types
    expect_dtype(number, values)
    _checked_matrix(indptr, attrs)
    _stored(indices, values)
    if attrs.int("axis", 1) not in (1, -1):
        raise TypeRuleError(f"CSRReduceSum adds up rows (axis 1), got axis {attrs.int('axis')}")
    return (TensorType((_rows(indptr), 1, *values.shape[1:]), values.dtype),)


def _reduce(indptr: Array, indices: Array, values: Array, *, attrs: Attrs) -> Array:
    """(indptr, indices, values): the sum of the stored values of every row, as [rows, 1, ...]."""
    return _row_sums(indptr, in_float64(values))[:, None].astype(values.dtype)


CSR_REDUCE_SUM = declare(
    "CSRReduceSum",
    Kind.OPAQUE,
    3,
    _reduce_type,
    _reduce,
    attributes=(dims("dense_shape"), plain("axis", "int", None)),
    indices=(0, 1),
    traits=Traits(values_of=2),
)


def _product_type(types: Types, attrs: Attrs) -> Types:
    indptr, indices, values, dense = types
    expect_dtype(number, values, dense)
    _stored(indices, values)
    _rows(indptr)
    if values.rank != 1 or dense.rank != 2:
        raise TypeRuleError("expects one number for each stored element and a dense matrix")
    if "dense_shape" in attrs and attrs.dims("dense_shape") != (_rows(indptr), dense.shape[0]):
        raise TypeRuleError(f"dense_shape must be [{_rows(indptr)}, {dense.shape[0]}]")
    return (TensorType((_rows(indptr), dense.shape[1]), dense.dtype),)


def _product(indptr: Array, indices: Array, values: Array, dense: Array, *, attrs: Attrs) -> Array:
    products = in_float64(values)[:, None] * in_float64(dense)[indices]
    return _row_sums(indptr, products).astype(dense.dtype)


def _vector_type(types: Types, attrs: Attrs) -> Types:
    if types[3].rank != 2 or types[3].shape[1] != 1:
        raise TypeRuleError(f"the vector must be a column [columns, 1], got {types[3]}")
    return _product_type(types, attrs)


CSR_MV = declare(
    "CSRMV",
    Kind.OPAQUE,
    4,
    _vector_type,
    _product,
    attributes=(dims("dense_shape", None),),
    indices=(0, 1),
    doc="The matrix times a column.",
    traits=Traits(factors=(2, 3)),
)
CSR_MM = declare(
    "CSRMM",
    Kind.OPAQUE,
    4,
    _product_type,
    _product,
    attributes=(dims("dense_shape", None),),
    indices=(0, 1),
    doc="The matrix times a dense matrix.",
    traits=Traits(factors=(2, 3)),
)


def _to_coo_type(types: Types, attrs: Attrs) -> Types:
    (indptr,) = types
    _rows(indptr)
    return (TensorType(attrs.dims("nnz"), indptr.dtype),)


def _to_coo(indptr: Array, *, attrs: Attrs) -> Array:
    """The row of each of the nnz stored elements."""
    return row_numbers(indptr).astype(indptr.dtype)


CSR_TO_COO = declare(
    "CSR2COO",
    Kind.OPAQUE,
    1,
    _to_coo_type,
    _to_coo,
    attributes=(plain("nnz", "Dim"),),
    indices=(0,),
    traits=Traits(moves=True),
)


def _to_csr_type(types: Types, attrs: Attrs) -> Types:
    (rows,) = types
    _stored(rows)
    (height,) = attrs.dims("height")
    return (TensorType((height + 1,), rows.dtype),)


def _to_csr(rows: Array, *, attrs: Attrs) -> Array:
    """indptr, from sorted row numbers."""
    return np.searchsorted(rows, np.arange(attrs.int("height") + 1)).astype(rows.dtype)


COO_TO_CSR = declare(
    "COO2CSR",
    Kind.OPAQUE,
    1,
    _to_csr_type,
    _to_csr,
    attributes=(plain("height", "Dim"),),
    indices=(0,),
    traits=Traits(moves=True),
)
