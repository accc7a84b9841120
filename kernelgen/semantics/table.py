"""Operator -> numpy meaning: ``meaning(operands, node) -> array`` (a tuple for several results).

The value may have another data type or fewer dims than described; the caller casts and broadcasts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS
from kernelgen.composite.vocabulary import (
    CUSTOM,
    ELEM_ALL,
    STANDARD_NORMAL,
    STRIDED_SLICE_V2,
    USER_DEFINED,
    VIEWS,
    by_operator,
    is_declared,
)
from kernelgen.errors import UnsupportedError
from kernelgen.semantics import convolution, index, layout, matmul, random, reduce, shape, slice, sparse
from kernelgen.semantics.algebra import Array, ArrayAlgebra
from kernelgen.tensor.operator import Application, Operator
from kernelgen.tensor.operators import catalogue as basic

Meaning = Callable[[Sequence[Array], Application], Array | tuple[Array, ...]]


def meaning_of(node: Application) -> Meaning | None:
    """The meaning of an operator, None when there is none; one that is declared elsewhere says itself what it means."""
    if is_declared(node.op):
        meaning = node.op.meaning
        return lambda operands, node: meaning(*operands, attrs=node.attrs)
    rule = ELEMENTWISE.get(node.op)
    return MEANINGS.get(node.op) if rule is None else lambda operands, node: rule(ArrayAlgebra(), operands, node)


def _complex(operands: Sequence[Array], node: Application) -> Array:
    """Part by part: ``re + 1j * im`` would spread a NaN or an infinity."""
    real, imaginary = np.broadcast_arrays(*operands)
    result = np.empty(real.shape, node.out.dtype.numpy)
    result.real, result.imag = real, imaginary
    return result


def _custom(operands: Sequence[Array], node: Application) -> Array:
    """Refused: Custom carries Python source in a file's attributes, and a description is data, not a program."""
    raise UnsupportedError(
        "unsupported-op", f"{node.op.name} holds source code, which is not run; write it in operators"
    )


MEANINGS: Mapping[Operator, Meaning] = MappingProxyType({
    **dict.fromkeys(REDUCTIONS, reduce.reduction),
    **by_operator({
        VIEWS: shape.reshape, (basic.ARGMAX, basic.ARGMIN): reduce.extreme_position,
        (basic.CUM_SUM, basic.CUM_PROD): reduce.scan, (basic.MATMUL, basic.BATCH_MATMUL): matmul.matmul,
        basic.STORED_MATMUL: matmul.stored_matmul, basic.MATMUL_INTEGER: matmul.matmul_integer,
        (basic.CSR_MUL, basic.CSR_DIV): sparse.csr_elementwise, (basic.CSR_MV, basic.CSR_MM): sparse.csr_matmul,
        basic.ELEM_ANY: reduce.any_positive, ELEM_ALL: reduce.all_positive, basic.BROADCAST_TO: shape.broadcast,
        basic.TRANSPOSE: shape.transpose, basic.TILE: shape.tile, basic.CONCAT: shape.concat, basic.SPLIT: shape.split,
        basic.PAD_AKG: shape.pad, basic.UNPAD_AKG: shape.unpad, basic.STRIDED_SLICE: slice.strided_slice,
        STRIDED_SLICE_V2: slice.strided_slice_v2, basic.SLICE: slice.plain_slice, basic.GATHER: index.gather,
        basic.GATHER_ND: index.gather_nd, basic.TENSOR_SCATTER_ADD: index.tensor_scatter_add,
        basic.UNSORTED_SEGMENT_SUM: index.unsorted_segment_sum, basic.ONE_HOT: index.one_hot,
        (basic.TRANS_DATA, basic.LAYOUT_TRANSFORM): layout.trans_data, basic.CONV2D: convolution.conv2d,
        basic.POOL2D: convolution.pool2d, basic.COMPLEX: _complex, basic.C_REAL: lambda operands, node: operands[0].real,
        basic.C_IMAG: lambda operands, node: operands[0].imag, basic.CSR_REDUCE_SUM: sparse.csr_reduce_sum,
        basic.CSR_GATHER: sparse.csr_gather, basic.CSR_TO_COO: sparse.csr_to_coo, basic.COO_TO_CSR: sparse.coo_to_csr,
        basic.ASSIGN: lambda operands, node: operands[1],
        STANDARD_NORMAL: random.standard_normal, (CUSTOM, USER_DEFINED): _custom,
    }),
})  # fmt: skip
