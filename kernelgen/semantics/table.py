"""Operator name -> numpy meaning: ``meaning(operands, op) -> array`` (a tuple for several results).

The value may have another data type or fewer dims than described; the caller casts and broadcasts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from kernelgen.composite.description import OpDesc
from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS
from kernelgen.errors import UnsupportedError
from kernelgen.semantics import convolution, index, layout, matmul, random, reduce, shape, slice, sparse
from kernelgen.semantics.algebra import Array, ArrayAlgebra

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
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze", "Flatten", "EquivFormat"), shape.reshape),
    **dict.fromkeys(("Argmax", "Argmin"), reduce.extreme_position),
    **dict.fromkeys(("CumSum", "CumProd"), reduce.scan),
    **dict.fromkeys(("MatMul", "BatchMatMul"), matmul.matmul),
    **dict.fromkeys(("CSRMul", "CSRDiv"), sparse.csr_elementwise),
    **dict.fromkeys(("CSRMV", "CSRMM"), sparse.csr_matmul),
    "ElemAny": reduce.any_positive, "ElemAll": reduce.all_positive,
    "BroadcastTo": shape.broadcast, "Transpose": shape.transpose, "Tile": shape.tile, "Concat": shape.concat,
    "Split": shape.split, "PadAkg": shape.pad, "UnPadAkg": shape.unpad,
    "StridedSlice": slice.strided_slice, "StridedSliceV2": slice.strided_slice_v2, "Slice": slice.plain_slice,
    "Gather": index.gather, "GatherNd": index.gather_nd, "TensorScatterAdd": index.tensor_scatter_add,
    "UnsortedSegmentSum": index.unsorted_segment_sum, "OneHot": index.one_hot,
    "TransData": layout.trans_data, "LayoutTransform": layout.trans_data,
    "Conv2D": convolution.conv2d, "Pool2D": convolution.pool2d,
    "Complex": _complex, "CReal": lambda operands, op: operands[0].real, "CImag": lambda operands, op: operands[0].imag,
    "CSRReduceSum": sparse.csr_reduce_sum, "CSRGather": sparse.csr_gather, "CSR2COO": sparse.csr_to_coo,
    "COO2CSR": sparse.coo_to_csr, "StandardNormal": random.standard_normal,
    **dict.fromkeys(("Custom", "UserDefined"), _custom),
})  # fmt: skip
