"""Shapes of positions and of CSR matrices, whose attributes AKG may leave away.

A CSR matrix of ``dense_shape`` is ``indptr`` [rows + 1], ``indices`` [count] and ``values`` [count, ...].
"""

from __future__ import annotations

from kernelgen.composite.axes import broadcast, normal_axis
from kernelgen.composite.description import OpDesc
from kernelgen.tensor.dims import Shape


def extreme_position_shape(op: OpDesc) -> tuple[Shape, ...]:
    """Argmax and Argmin drop dim ``axis``, which must not be empty. Raises ValueError where it is."""
    shape = op.inputs[0].shape
    axis = normal_axis(op.attrs.ints("axis", (-1,))[0], len(shape))
    if shape and shape[axis] == 0:
        raise ValueError(f"there is no extreme along axis {axis} of {list(shape)}")
    return ((*shape[:axis], *shape[axis + 1 :]),)


def csr_elementwise_shape(op: OpDesc) -> tuple[Shape, ...]:
    """CSRMul and CSRDiv: the values' shape; the dense operand broadcasts to ``dense_shape``.

    Raises ValueError for values and dense operands that do not fit.
    """
    _, indices, values, dense = (t.shape for t in op.inputs)
    rows_columns = op.attrs.dims("dense_shape")[:2]
    if values[:1] != indices or broadcast(dense[:2], rows_columns) != rows_columns:
        raise ValueError(f"values {list(values)} and dense {list(dense)} do not fit {list(rows_columns)}")
    return (broadcast(values, (indices[0], *dense[2:])),)


def csr_gather_shape(op: OpDesc) -> tuple[Shape, ...]:
    """CSRGather: one dense element (or row of further dims) per stored place."""
    _, indices, dense = (t.shape for t in op.inputs)
    return ((*indices, *dense[2:]),)


def csr_reduce_sum_shape(op: OpDesc) -> tuple[Shape, ...]:
    """CSRReduceSum along axis 1, which is kept with extent 1. Raises ValueError for another axis."""
    if op.attrs.ints("axis", (1,)) not in ((1,), (-1,)):
        raise ValueError(f"CSRReduceSum along axis {op.attrs.ints('axis')}, only 1 is meant")
    return ((op.inputs[0].shape[0] - 1, 1, *op.inputs[2].shape[1:]),)


def csr_matmul_shape(op: OpDesc) -> tuple[Shape, ...]:
    """CSRMV and CSRMM: ``[rows, ...]`` of a dense operand ``[columns, ...]``."""
    return ((op.inputs[0].shape[0] - 1, *op.inputs[3].shape[1:]),)


def csr_to_coo_shape(op: OpDesc) -> tuple[Shape, ...]:
    """CSR2COO: ``nnz`` row numbers."""
    return (op.attrs.dims("nnz") if "nnz" in op.attrs else op.outputs[0].shape,)


def coo_to_csr_shape(op: OpDesc) -> tuple[Shape, ...]:
    """COO2CSR: the starts of ``height`` rows, and the end."""
    return ((op.attrs.dims("height")[0] + 1,) if "height" in op.attrs else op.outputs[0].shape,)
