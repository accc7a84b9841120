"""Operator -> lowering: the one place to add an operator to the polyhedral side."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS
from kernelgen.composite.vocabulary import (
    ELEM_ALL,
    STANDARD_NORMAL,
    STRIDED_SLICE_V2,
    VIEWS,
    by_operator,
)
from kernelgen.errors import UnsupportedError
from kernelgen.poly.lower import (
    assign,
    convolution,
    copies,
    elements,
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
    stored_products,
)
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic

LOWERINGS: Mapping[Operator, Lowering] = MappingProxyType({
    **dict.fromkeys(ELEMENTWISE, pointwise.POINTWISE),
    **dict.fromkeys(REDUCTIONS, reductions.REDUCTION),
    **by_operator({
        VIEWS: copies.RESHAPE, basic.ASSIGN: assign.ASSIGN, (basic.ELEM_ANY, ELEM_ALL): reductions.POSITIVE,
        (basic.ARGMAX, basic.ARGMIN): reductions.EXTREME_POSITION, (basic.CUM_SUM, basic.CUM_PROD): scans.SCAN,
        (basic.STRIDED_SLICE, STRIDED_SLICE_V2, basic.SLICE, basic.UNPAD_AKG): slices.SLICE,
        (basic.MATMUL, basic.BATCH_MATMUL, basic.MATMUL_INTEGER): products.MATMUL,
        basic.STORED_MATMUL: stored_products.STORED_MATMUL, basic.BROADCAST_TO: pointwise.BROADCAST,
        basic.TRANSPOSE: copies.TRANSPOSE, basic.TILE: repeats.TILE, basic.SPLIT: slices.SPLIT, basic.CONCAT: slices.CONCAT,
        basic.PAD_AKG: slices.PAD, basic.GATHER: indexing.GATHER, basic.GATHER_ND: indexing.GATHER_ND,
        basic.TENSOR_SCATTER_ADD: indexing.SCATTER_ADD, basic.UNSORTED_SEGMENT_SUM: indexing.SEGMENT_SUM,
        basic.ONE_HOT: indexing.ONE_HOT, basic.CONV2D: convolution.CONVOLUTION, basic.POOL2D: convolution.POOL,
        STANDARD_NORMAL: random.STANDARD_NORMAL, (basic.TRANS_DATA, basic.LAYOUT_TRANSFORM): layouts.LAYOUT,
        (basic.CSR_MUL, basic.CSR_DIV): sparse.CSR_ELEMENTWISE, (basic.CSR_MV, basic.CSR_MM): sparse.CSR_PRODUCT,
        basic.CSR_REDUCE_SUM: sparse.CSR_SUM, basic.CSR_GATHER: sparse.CSR_GATHER, basic.CSR_TO_COO: sparse.CSR_TO_COO,
        basic.COO_TO_CSR: sparse.COO_TO_CSR,
    }),
})  # fmt: skip


def _declared(operator: Operator) -> Lowering | None:
    """The lowering of an operator that is declared elsewhere, by the rule that it brings."""
    if operator.scalar is not None:
        return pointwise.POINTWISE
    return None if operator.element is None else elements.lowering_by_element(operator.element)


def lowering_of(node: Node) -> Lowering:
    """The lowering of an operator. Raises UnsupportedError when there is none."""
    found = LOWERINGS.get(node.op) or _declared(node.op)
    if found is None:
        raise UnsupportedError("unsupported-op", f"operator {node.op.name!r} has no polyhedral form yet")
    return found
