"""Operator name -> lowering: the one place to add an operator to the polyhedral side."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kernelgen.composite import scalar_rules as vocabulary
from kernelgen.composite.description import OpDesc
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

LOWERINGS: Mapping[str, Lowering] = MappingProxyType({
    **dict.fromkeys(vocabulary.ELEMENTWISE, pointwise.POINTWISE),
    **dict.fromkeys(vocabulary.REDUCTIONS, reductions.REDUCTION),
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze", "Flatten", "EquivFormat"), copies.RESHAPE),
    **dict.fromkeys(("Assign", "InplaceAssign"), assign.ASSIGN),
    **dict.fromkeys(("ElemAny", "ElemAll"), reductions.POSITIVE),
    **dict.fromkeys(("Argmax", "Argmin"), reductions.EXTREME_POSITION),
    **dict.fromkeys(("StridedSlice", "StridedSliceV2", "Slice", "UnPadAkg"), slices.SLICE),
    **dict.fromkeys(("MatMul", "BatchMatMul"), products.MATMUL),
    **dict.fromkeys(("CumSum", "CumProd"), scans.SCAN),
    "BroadcastTo": pointwise.BROADCAST, "Transpose": copies.TRANSPOSE, "Tile": repeats.TILE,
    "Split": slices.SPLIT, "Concat": slices.CONCAT, "PadAkg": slices.PAD,
    "Gather": indexing.GATHER, "GatherNd": indexing.GATHER_ND, "TensorScatterAdd": indexing.SCATTER_ADD,
    "UnsortedSegmentSum": indexing.SEGMENT_SUM, "OneHot": indexing.ONE_HOT,
    "Conv2D": convolution.CONVOLUTION, "Pool2D": convolution.POOL,
    "TransData": layouts.LAYOUT, "LayoutTransform": layouts.LAYOUT, "StandardNormal": random.STANDARD_NORMAL,
    **dict.fromkeys(("CSRMul", "CSRDiv"), sparse.CSR_ELEMENTWISE),
    **dict.fromkeys(("CSRMV", "CSRMM"), sparse.CSR_PRODUCT),
    "CSRReduceSum": sparse.CSR_SUM, "CSRGather": sparse.CSR_GATHER, "CSR2COO": sparse.CSR_TO_COO,
    "COO2CSR": sparse.COO_TO_CSR,
})  # fmt: skip


def lowering_of(op: OpDesc) -> Lowering:
    """The lowering of an operator. Raises UnsupportedError when there is none."""
    found = LOWERINGS.get(op.name)
    if found is None:
        raise UnsupportedError("unsupported-op", f"operator {op.name!r} has no polyhedral form yet")
    return found
