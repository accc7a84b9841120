"""Matrix products."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import flag
from kernelgen.tensor.operators.families import Array, declare, rounded
from kernelgen.tensor.operators.type_rules import broadcast_shapes, expect_dtype, real
from kernelgen.tensor.types import Attrs, Shape, TensorType, dtype

ATTRIBUTES = (flag("transpose_a"), flag("transpose_b"), "Akg")  # Akg: what insert_pad_ops decided

FLOAT32, NARROW = dtype("float32"), frozenset({dtype("float16"), dtype("bfloat16")})


def _product_type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    if len(types) not in (2, 3):
        raise TypeRuleError(f"expects two operands and perhaps a bias, got {len(types)} operands")
    a, b, *bias = types
    shared = expect_dtype(real, a, b)
    shape = product_shape(a.shape, b.shape, attrs)
    columns = shape[-1]
    if bias and bias[0].shape != (columns,):
        raise TypeRuleError(f"the bias must have one element for each of {columns} columns, got {bias[0]}")
    if bias and bias[0].dtype != shared and not (bias[0].dtype == FLOAT32 and shared in NARROW):
        raise TypeRuleError(f"the bias of a product in {shared} must be {shared} too, or f32 when that is wider")
    return (TensorType(shape, shared),)


def product_shape(left: Shape, right: Shape, attrs: Attrs) -> Shape:
    """The shape of the product of matrices of shapes ``left`` and ``right``, which ``attrs`` may say to transpose.

    Raises TypeRuleError where they do not fit.
    """
    if len(left) < 2 or len(right) < 2:
        raise TypeRuleError(f"operands need two dims at least, got rank {len(left)} and {len(right)}")
    rows, inner = _matrix(left, attrs.bool("transpose_a", False))
    other, columns = _matrix(right, attrs.bool("transpose_b", False))
    if inner != other:
        raise TypeRuleError(f"inner extents {inner} and {other} must be equal")
    return (*broadcast_shapes((left[:-2], right[:-2])), rows, columns)


def _matrix(shape: Shape, transposed: bool) -> Shape:
    return (shape[-1], shape[-2]) if transposed else shape[-2:]


def _matmul_type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    if any(type_.rank != 2 for type_ in types[:2]):
        raise TypeRuleError("expects matrices of rank 2; use BatchMatMul for more dims")
    return _product_type(types, attrs)


def _product(a: Array, b: Array, *bias: Array, attrs: Attrs) -> Array:
    left = np.swapaxes(a, -1, -2) if attrs.bool("transpose_a", False) else a
    right = np.swapaxes(b, -1, -2) if attrs.bool("transpose_b", False) else b

    def compute(left: Array, right: Array, *bias: Array) -> Array:
        product = np.matmul(left, right)
        return product + bias[0] if bias else product

    return rounded(compute)(left, right, *bias)


MATMUL = declare(
    "MatMul",
    Kind.OPAQUE,
    None,
    _matmul_type,
    _product,
    attributes=ATTRIBUTES,
    doc="The product of two matrices; a third operand, one element a column, is added to every row before rounding.",
    traits=Traits(factors=(0, 1)),
)
BATCH_MATMUL = declare(
    "BatchMatMul",
    Kind.OPAQUE,
    None,
    _product_type,
    _product,
    attributes=ATTRIBUTES,
    doc="Products of the last two dims; the dims before them broadcast. A third operand is added to every row.",
    traits=Traits(factors=(0, 1), call=("a", "b", "transpose_a", "transpose_b")),
)
