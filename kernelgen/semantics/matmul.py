"""Matrix products: half precision accumulates in float32, float32 in float64."""

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
