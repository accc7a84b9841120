"""GroupedMatmul: a matrix product for each group of rows, as mixtures of experts need it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import flag, whole
from kernelgen.tensor.operators.families import Array, declare, rounded
from kernelgen.tensor.operators.type_rules import expect_dtype, floating, integer
from kernelgen.tensor.types import Attrs, Shape, TensorType

Types = tuple[TensorType, ...]

ROWS, INNER = 0, 2  # the values of group_type: which extent the groups divide


def _matrix(shape: Shape, transposed: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


def _checked_operands(types: Types, attrs: Attrs) -> None:
    x, weight, groups = types
    expect_dtype(floating, x, weight)
    expect_dtype(integer, groups)
    if attrs.int("split_item", 3) != 3 or attrs.int("group_type", ROWS) not in (ROWS, INNER):
        raise TypeRuleError("supports split_item 3 with group_type 0 (rows) or 2 (inner extent)")
    rank = 3 if attrs.int("group_type", ROWS) == ROWS else 2
    if x.rank != 2 or weight.rank != rank or groups.rank != 1:
        raise TypeRuleError(f"expects a matrix, a weight of rank {rank} and a vector of group ends")


def _type(types: Types, attrs: Attrs) -> Types:
    _checked_operands(types, attrs)
    x, weight, groups = types
    rows, inner = _matrix(x.shape, attrs.bool("transpose_a", False))
    *experts, inner_of_weight, columns = _matrix(weight.shape, attrs.bool("transpose_b", False))
    if inner != inner_of_weight or any(count != groups.shape[0] for count in experts):
        raise TypeRuleError("the inner extents must be equal, and the weight must have a matrix for each group")
    return (TensorType((rows, columns) if experts else (groups.shape[0], rows, columns), x.dtype),)


def _meaning(x: Array, weight: Array, groups: Array, *, attrs: Attrs) -> Array:
    """(x, weight, group_list), where group_list holds the end of each group. group_type 0: rows of x times the weight
    [groups, inner, columns] of their group, 0 behind the last end; 2: the inner extent is divided, one product a
    group."""
    left = x.T if attrs.bool("transpose_a", False) else x
    right = np.swapaxes(weight, -1, -2) if attrs.bool("transpose_b", False) else weight
    ends = [0, *(int(end) for end in groups)]
    ranges = [slice(begin, end) for begin, end in pairwise(ends)]

    def by_rows(wide: Array, matrices: Array) -> Array:
        result = np.zeros((wide.shape[0], matrices.shape[-1]), wide.dtype)
        for matrix, rows in zip(matrices, ranges, strict=True):
            result[rows] = wide[rows] @ matrix
        return result

    def by_inner(wide: Array, matrix: Array) -> Array:
        empty = np.zeros((0, wide.shape[0], matrix.shape[-1]), wide.dtype)
        return np.concatenate([empty, *((wide[:, part] @ matrix[part])[None] for part in ranges)])

    return rounded(by_rows if weight.ndim == 3 else by_inner)(left, right)


GROUPED_MATMUL = declare(
    "GroupedMatmul",
    Kind.OPAQUE,
    3,
    _type,
    _meaning,
    attributes=(whole("split_item", None), whole("group_type", None), flag("transpose_a"), flag("transpose_b")),
    indices=(2,),
)
