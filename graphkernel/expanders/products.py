"""Matrix products that are products of elements."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import FLOAT32, Declined, Expansion, expander, is_narrow
from graphkernel.ops import Tensor
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.types import Attrs


@expander(MATMUL, wide=False)
def matmul(a: Tensor, b: Tensor, *bias: Tensor, attrs: Attrs) -> Expansion:
    """column * row + bias, where the inner extent is 1"""
    return outer_product(a, b, *bias, attrs=attrs)


@expander(BATCH_MATMUL, wide=False)
def batch_matmul(a: Tensor, b: Tensor, *bias: Tensor, attrs: Attrs) -> Expansion:
    """column * row + bias, where the inner extent is 1"""
    return outer_product(a, b, *bias, attrs=attrs)


def outer_product(a: Tensor, b: Tensor, *bias: Tensor, attrs: Attrs) -> Expansion:
    """A vector is transposed by a reshape. (MindSpore transposes with an axis that is out of range.)

    A bias is added before the one rounding of a product in 16 bits.
    """
    transposed_a, transposed_b = attrs.bool("transpose_a", False), attrs.bool("transpose_b", False)
    inner = a.shape[-2 if transposed_a else -1]
    if inner != 1:
        return Declined(f"the inner extent is {inner}; only with 1 is a matrix product one of elements")
    column = ops.reshape(a, (*a.shape[:-2], a.shape[-1], 1)) if transposed_a else a
    row = ops.reshape(b, (*b.shape[:-2], 1, b.shape[-2])) if transposed_b else b
    if not bias:
        return column * row
    column, row, term = (ops.cast(x, FLOAT32) if is_narrow(x.dtype) else x for x in (column, row, *bias))
    return column * row + term
