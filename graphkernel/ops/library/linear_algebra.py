"""Factorisation and triangular systems: operators that stay on the host library. They compute in float64."""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import flag
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import expect_dtype, floating
from kernelgen.tensor.types import Attrs, TensorType, dtype

Types = tuple[TensorType, ...]


def _checked_square(x: TensorType) -> None:
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise TypeRuleError(f"expects square matrices, got {x}")


def _solve_type(types: Types, attrs: Attrs) -> Types:
    a, b = types
    expect_dtype(floating, a, b)
    _checked_square(a)
    if b.rank != a.rank or b.shape[:-1] != a.shape[:-1]:
        raise TypeRuleError(f"the right sides need the shape {a.shape[:-1]} and columns, got {b}")
    return (b,)


def _solve(a: Array, b: Array, *, attrs: Attrs) -> Array:
    """(a, b): x with a @ x = b, of a only the upper (or lower) triangle is read; trans solves with its transpose."""
    lower, transposed = attrs.bool("lower", False), attrs.bool("trans", False)
    kept = (np.tril if lower else np.triu)(a.astype(np.float64))
    matrix = np.swapaxes(kept, -1, -2) if transposed else kept
    x = b.astype(np.float64)
    size = matrix.shape[-1]
    order = range(size) if lower != transposed else range(size - 1, -1, -1)
    for row in order:  # what is not solved yet has factors of 0 in this row, except the diagonal
        known = (matrix[..., row : row + 1, :] @ x)[..., 0, :] - matrix[..., row, row, None] * x[..., row, :]
        diagonal = 1.0 if attrs.bool("unit_diagonal", False) else matrix[..., row, row, None]
        x[..., row, :] = (x[..., row, :] - known) / diagonal
    return x.astype(b.dtype)


SOLVE_TRIANGULAR = declare(
    "SolveTriangular",
    Kind.OPAQUE,
    2,
    _solve_type,
    _solve,
    attributes=(flag("lower"), flag("trans"), flag("unit_diagonal")),
)


def _lu_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    expect_dtype(floating, x)
    _checked_square(x)
    return (x, TensorType(x.shape[:-1], dtype("int32")))


def _lu(x: Array, *, attrs: Attrs) -> tuple[Array, Array]:
    """x -> (both factors in one matrix, p) with partial pivoting: x[p] is L @ U, the diagonal of L is 1 and not
    stored."""
    size = x.shape[-1]
    matrices = x.astype(np.float64).reshape(-1, size, size)
    permutations = np.tile(np.arange(size, dtype=np.int32), (len(matrices), 1))
    for matrix, permutation in zip(matrices, permutations, strict=True):
        for column in range(size):
            pivot = column + int(np.argmax(np.abs(matrix[column:, column])))
            for rows in (matrix, permutation):
                rows[[column, pivot]] = rows[[pivot, column]]
            matrix[column + 1 :, column] /= matrix[column, column]
            matrix[column + 1 :, column + 1 :] -= np.outer(matrix[column + 1 :, column], matrix[column, column + 1 :])
    return matrices.reshape(x.shape).astype(x.dtype), permutations.reshape(x.shape[:-1])


LU = declare("Lu", Kind.OPAQUE, 1, _lu_type, _lu)
