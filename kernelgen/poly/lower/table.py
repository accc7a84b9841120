"""Operator name -> lowering: the one place to add an operator to the polyhedral side."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kernelgen.composite.description import OpDesc
from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS
from kernelgen.composite.vocabulary import ELEM_ALL, INPLACE_ASSIGN, STANDARD_NORMAL, STRIDED_SLICE_V2, VIEWS, by_name
from kernelgen.errors import UnsupportedError
from kernelgen.poly.lower import (
    assign,
    convolution,
    copies,
    indexing,
    layouts,
    pointwise,
    products,
    random,
    reductions,
    repeats,
    scans,
    slices,
    sparse,
)
from kernelgen.poly.lower.lowering import Lowering
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
from kernelgen.tensor.operators.effects import ASSIGN
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

LOWERINGS: Mapping[str, Lowering] = MappingProxyType({
    **dict.fromkeys(ELEMENTWISE, pointwise.POINTWISE),
    **dict.fromkeys(REDUCTIONS, reductions.REDUCTION),
    **by_name({
        VIEWS: copies.RESHAPE, (ASSIGN, INPLACE_ASSIGN): assign.ASSIGN, (ELEM_ANY, ELEM_ALL): reductions.POSITIVE,
        (ARGMAX, ARGMIN): reductions.EXTREME_POSITION, (CUM_SUM, CUM_PROD): scans.SCAN,
        (STRIDED_SLICE, STRIDED_SLICE_V2, SLICE, UNPAD_AKG): slices.SLICE, (MATMUL, BATCH_MATMUL): products.MATMUL,
        BROADCAST_TO: pointwise.BROADCAST, TRANSPOSE: copies.TRANSPOSE, TILE: repeats.TILE,
        SPLIT: slices.SPLIT, CONCAT: slices.CONCAT, PAD_AKG: slices.PAD,
        GATHER: indexing.GATHER, GATHER_ND: indexing.GATHER_ND, TENSOR_SCATTER_ADD: indexing.SCATTER_ADD,
        UNSORTED_SEGMENT_SUM: indexing.SEGMENT_SUM, ONE_HOT: indexing.ONE_HOT,
        CONV2D: convolution.CONVOLUTION, POOL2D: convolution.POOL, STANDARD_NORMAL: random.STANDARD_NORMAL,
        (TRANS_DATA, LAYOUT_TRANSFORM): layouts.LAYOUT, (CSR_MUL, CSR_DIV): sparse.CSR_ELEMENTWISE,
        (CSR_MV, CSR_MM): sparse.CSR_PRODUCT, CSR_REDUCE_SUM: sparse.CSR_SUM, CSR_GATHER: sparse.CSR_GATHER,
        CSR_TO_COO: sparse.CSR_TO_COO, COO_TO_CSR: sparse.COO_TO_CSR,
    }),
})  # fmt: skip


def lowering_of(op: OpDesc) -> Lowering:
    """The lowering of an operator. Raises UnsupportedError when there is none."""
    found = LOWERINGS.get(op.name)
    if found is None:
        raise UnsupportedError("unsupported-op", f"operator {op.name!r} has no polyhedral form yet")
    return found
