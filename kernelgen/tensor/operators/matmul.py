"""Matrix products, also with weights that are stored narrower than they are computed with."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import flag, whole
from kernelgen.tensor.operators.families import Array, declare, rounded
from kernelgen.tensor.operators.type_rules import broadcast_shapes, expect_dtype, floating, real
from kernelgen.tensor.types import Attrs, Shape, TensorType, dtype

ATTRIBUTES = (flag("transpose_a"), flag("transpose_b"), "Akg")  # Akg: what insert_pad_ops decided

FLOAT32, NARROW = dtype("float32"), frozenset({dtype("float16"), dtype("bfloat16")})

BITS = "bits"
NIBBLE, HALF_NIBBLE = 4, 8
"""Bits of a weight of which two lie in a byte, and what is subtracted from such a one: it stands for -8 to 7."""

STORES = NARROW | {dtype("int8"), dtype("uint8")}
"""What weights may be stored as."""


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


BYTES = frozenset({dtype("int8"), dtype("uint8")})
"""What MatMulInteger multiplies."""


def _integer_type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    a, b = types
    if not {a.dtype, b.dtype} <= BYTES:
        raise TypeRuleError(f"expects int8 or uint8, got {a.dtype} and {b.dtype}")
    return (TensorType(product_shape(a.shape, b.shape, attrs), dtype("int32")),)


def _integer_product(a: Array, b: Array, attrs: Attrs) -> Array:
    """The product of matrices of bytes, each with a sign or without, in int32; dims before the last two broadcast."""
    return np.matmul(a.astype(np.int32), b.astype(np.int32))


MATMUL_INTEGER = declare(
    "MatMulInteger", Kind.OPAQUE, 2, _integer_type, _integer_product, traits=Traits(factors=(0, 1))
)


def _stored_type(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    if not 2 <= len(types) <= 4:
        raise TypeRuleError(f"expects rows and weights, perhaps scales and zero points, got {len(types)} operands")
    x, weights, *each = types
    expect_dtype(floating, x)
    is_nibbles = attrs.int(BITS, 0) == NIBBLE
    if weights.dtype not in STORES or weights.rank != 3 or (is_nibbles and weights.dtype != dtype("uint8")):
        raise TypeRuleError(f"expects weights in groups of terms, narrower than their numbers, got {weights}")
    groups, terms, columns = weights.shape
    if x.rank < 2 or x.shape[-1] != groups * terms * (1 + is_nibbles):
        raise TypeRuleError(f"rows of {x} do not fit weights {weights}")
    if any(of.shape != (groups, columns) or of.dtype != FLOAT32 for of in each):
        raise TypeRuleError(f"scales and zero points must be f32[{groups}, {columns}]")
    return (TensorType((*x.shape[:-1], columns), x.dtype),)


def weights_of(stored: Array, *each: Array, bits: int) -> Array:
    """The numbers in float32 that weights ``[groups, terms, columns]`` stand for, as a matrix of terms by columns.

    ``each`` are scales and zero points, ``[groups, columns]``: a number is the stored one less the zero point times the scale.
    """
    wide = stored.astype(np.float32)
    if bits == NIBBLE:
        halves = np.stack((stored % (2 * HALF_NIBBLE), stored // (2 * HALF_NIBBLE)), axis=2)
        wide = halves.astype(np.float32).reshape(len(stored), -1, stored.shape[-1]) - np.float32(HALF_NIBBLE)
    for zeros in each[1:]:
        wide = wide - zeros[:, None]
    for scales in each[:1]:
        wide = wide * scales[:, None]
    return wide.reshape(-1, stored.shape[-1])


def _stored_product(x: Array, stored: Array, *each: Array, attrs: Attrs) -> Array:
    """x [.., terms] times the weights [groups, terms of a group, columns], of which each group and column may have a scale
    and a zero point. With bits=4 two terms share a byte, the first in its low half, and are 8 more than they stand for."""
    weights = weights_of(stored, *each, bits=attrs.int(BITS, 0))
    return rounded(lambda rows: np.matmul(rows, weights.astype(rows.dtype)))(x)


STORED_MATMUL = declare(
    "StoredMatMul",
    Kind.OPAQUE,
    None,
    _stored_type,
    _stored_product,
    attributes=(whole(BITS, 0),),
    traits=Traits(factors=(0, 1)),
)
