"""Matrix products: half precision accumulates in float32, float32 in float64, bytes in int32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.semantics.algebra import Array
from kernelgen.semantics.layout import from_fractal, to_fractal
from kernelgen.semantics.shape import result_shape
from kernelgen.tensor.operator import Application

FRACTAL = "FRACTAL_NZ"


def matmul(operands: Sequence[Array], node: Application) -> Array:
    """MatMul and BatchMatMul: ``transpose_a``, ``transpose_b``, formats; an optional third operand is added."""
    left = _matrix(operands[0], node, 0, "left_format", "transpose_a")
    right = _matrix(operands[1], node, 1, "right_format", "transpose_b")
    product = np.matmul(left, right)
    if len(operands) == 3:
        product = product + operands[2]
    if node.out.layout == FRACTAL:
        return to_fractal(product)
    rows, columns = result_shape(node)[-2:]
    return product[..., :rows, :columns]  # blocks of operands may be padded


def matmul_integer(operands: Sequence[Array], node: Application) -> Array:
    """MatMulInteger: products of bytes, summed in int32."""
    left, right = (each.astype(np.int32) for each in operands)
    return np.matmul(left, right)


def stored_matmul(operands: Sequence[Array], node: Application) -> Array:
    """StoredMatMul: weights in groups of terms, ``[groups, terms, columns]``; scales and zero points, ``[groups, columns]``."""
    x, stored, *each = operands
    weights = unpacked(stored, node).astype(wide_type(x))
    for zeros in each[1:]:
        weights = weights - zeros[:, None]
    for scales in each[:1]:
        weights = weights * scales[:, None]
    return np.matmul(x.astype(weights.dtype), weights.reshape(-1, stored.shape[-1]))


def unpacked(stored: Array, node: Application) -> Array:
    """The stored numbers of StoredMatMul in float64: of four bits the two in each byte, the lower first, less eight."""
    if node.attrs.int("bits", 0) != 4:
        return stored.astype(np.float64)
    halves = np.stack((stored & 15, stored >> 4), axis=2).astype(np.float64) - 8
    return halves.reshape(len(stored), -1, stored.shape[-1])


def _matrix(value: Array, node: Application, place: int, layout: str, transposed: str) -> Array:
    if FRACTAL in (node.args[place].layout, node.attrs.str(layout, "DefaultFormat")):
        value = from_fractal(value)
    wide = value.astype(wide_type(value))
    return np.swapaxes(wide, -1, -2) if node.attrs.bool(transposed, False) else wide


def wide_type(value: Array) -> type:
    """The data type that products of this array's elements are summed in."""
    if value.dtype.kind in "iuc":
        return value.dtype.type
    return np.float32 if value.dtype.itemsize == 2 else np.float64
