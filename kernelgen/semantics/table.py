"""Operator name -> numpy meaning: ``meaning(operands, op) -> array`` (a tuple for several results).

The value may have another data type or fewer dims than described; the caller casts and broadcasts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from kernelgen.composite.description import OpDesc
from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS
from kernelgen.composite.vocabulary import (
    CUSTOM,
    ELEM_ALL,
    STANDARD_NORMAL,
    STRIDED_SLICE_V2,
    USER_DEFINED,
    VIEWS,
    by_name,
)
from kernelgen.errors import UnsupportedError
from kernelgen.semantics import convolution, index, layout, matmul, random, reduce, shape, slice, sparse
from kernelgen.semantics.algebra import Array, ArrayAlgebra
from kernelgen.tensor.operators.complex_numbers import C_IMAG, C_REAL, COMPLEX
from kernelgen.tensor.operators.csr import (
    COO_TO_CSR,
    CSR_DIV,
    CSR_GATHER,
    CSR_MM,
    CSR_MUL,
    CSR_MV,
    CSR_REDUCE_SUM,
    CSR_TO_COO,
)
from kernelgen.tensor.operators.indexing import GATHER, ONE_HOT
from kernelgen.tensor.operators.layout import LAYOUT_TRANSFORM, TRANS_DATA
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.padding import PAD_AKG, UNPAD_AKG
from kernelgen.tensor.operators.pieces import CONCAT, SLICE, SPLIT, STRIDED_SLICE
from kernelgen.tensor.operators.pool import POOL2D
from kernelgen.tensor.operators.reduce import ARGMAX, ARGMIN
from kernelgen.tensor.operators.scan import CUM_PROD, CUM_SUM
from kernelgen.tensor.operators.scatter import GATHER_ND, TENSOR_SCATTER_ADD, UNSORTED_SEGMENT_SUM
from kernelgen.tensor.operators.shape import BROADCAST_TO, TILE, TRANSPOSE
from kernelgen.tensor.operators.status import ELEM_ANY

Meaning = Callable[[Sequence[Array], OpDesc], Array | tuple[Array, ...]]


def meaning_of(name: str) -> Meaning | None:
    """The meaning of an operator, None when there is none."""
    if name in ELEMENTWISE:
        rule = ELEMENTWISE[name]
        return lambda operands, op: rule(ArrayAlgebra(), operands, op)
    return MEANINGS.get(name)


def _complex(operands: Sequence[Array], op: OpDesc) -> Array:
    """Part by part: ``re + 1j * im`` would spread a NaN or an infinity."""
    real, imaginary = np.broadcast_arrays(*operands)
    result = np.empty(real.shape, op.output.dtype.numpy)
    result.real, result.imag = real, imaginary
    return result


def _custom(operands: Sequence[Array], op: OpDesc) -> Array:
    """Refused: Custom carries Python source in a file's attributes, and a description is data, not a program."""
    raise UnsupportedError("unsupported-op", f"{op.name} holds source code, which is not run; write it in operators")


MEANINGS: Mapping[str, Meaning] = MappingProxyType({
    **dict.fromkeys(REDUCTIONS, reduce.reduction),
    **by_name({
        VIEWS: shape.reshape, (ARGMAX, ARGMIN): reduce.extreme_position, (CUM_SUM, CUM_PROD): reduce.scan,
        (MATMUL, BATCH_MATMUL): matmul.matmul, (CSR_MUL, CSR_DIV): sparse.csr_elementwise,
        (CSR_MV, CSR_MM): sparse.csr_matmul, ELEM_ANY: reduce.any_positive, ELEM_ALL: reduce.all_positive,
        BROADCAST_TO: shape.broadcast, TRANSPOSE: shape.transpose, TILE: shape.tile, CONCAT: shape.concat,
        SPLIT: shape.split, PAD_AKG: shape.pad, UNPAD_AKG: shape.unpad, STRIDED_SLICE: slice.strided_slice,
        STRIDED_SLICE_V2: slice.strided_slice_v2, SLICE: slice.plain_slice, GATHER: index.gather,
        GATHER_ND: index.gather_nd, TENSOR_SCATTER_ADD: index.tensor_scatter_add,
        UNSORTED_SEGMENT_SUM: index.unsorted_segment_sum, ONE_HOT: index.one_hot,
        (TRANS_DATA, LAYOUT_TRANSFORM): layout.trans_data, CONV2D: convolution.conv2d, POOL2D: convolution.pool2d,
        COMPLEX: _complex, C_REAL: lambda operands, op: operands[0].real, C_IMAG: lambda operands, op: operands[0].imag,
        CSR_REDUCE_SUM: sparse.csr_reduce_sum, CSR_GATHER: sparse.csr_gather, CSR_TO_COO: sparse.csr_to_coo,
        COO_TO_CSR: sparse.coo_to_csr, STANDARD_NORMAL: random.standard_normal, (CUSTOM, USER_DEFINED): _custom,
    }),
})  # fmt: skip
