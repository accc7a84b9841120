"""Shapes of positions and of CSR matrices, whose attributes AKG may leave away.

A CSR matrix of ``dense_shape`` is ``indptr`` [rows + 1], ``indices`` [count] and ``values`` [count, ...].
"""

from __future__ import annotations

from kernelgen.tensor.dims import Shape
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.type_rules import broadcast_shapes, single_axis


def extreme_position_shape(node: Application) -> tuple[Shape, ...]:
    """Argmax and Argmin drop dim ``axis``, which must not be empty. Raises ValueError where it is."""
    shape = node.args[0].shape
    axis = single_axis(node, -1)
    if shape and shape[axis] == 0:
        raise ValueError(f"there is no extreme along axis {axis} of {list(shape)}")
    return ((*shape[:axis], *shape[axis + 1 :]),)


def csr_elementwise_shape(node: Application) -> tuple[Shape, ...]:
    """CSRMul and CSRDiv: the values' shape; the dense operand broadcasts to ``dense_shape``.

    Raises ValueError for values and dense operands that do not fit.
    """
    _, indices, values, dense = (t.shape for t in node.args)
    rows_columns = node.attrs.dims("dense_shape")[:2]
    if values[:1] != indices or broadcast_shapes((dense[:2], rows_columns)) != rows_columns:
        raise ValueError(f"values {list(values)} and dense {list(dense)} do not fit {list(rows_columns)}")
    return (broadcast_shapes((values, (indices[0], *dense[2:]))),)


def csr_gather_shape(node: Application) -> tuple[Shape, ...]:
    """CSRGather: one dense element (or row of further dims) per stored place."""
    _, indices, dense = (t.shape for t in node.args)
    return ((*indices, *dense[2:]),)


def csr_reduce_sum_shape(node: Application) -> tuple[Shape, ...]:
    """CSRReduceSum along axis 1, which is kept with extent 1. Raises ValueError for another axis."""
    if node.attrs.ints("axis", (1,)) not in ((1,), (-1,)):
        raise ValueError(f"CSRReduceSum along axis {node.attrs.ints('axis')}, only 1 is meant")
    return ((node.args[0].shape[0] - 1, 1, *node.args[2].shape[1:]),)


def csr_matmul_shape(node: Application) -> tuple[Shape, ...]:
    """CSRMV and CSRMM: ``[rows, ...]`` of a dense operand ``[columns, ...]``."""
    return ((node.args[0].shape[0] - 1, *node.args[3].shape[1:]),)


def csr_to_coo_shape(node: Application) -> tuple[Shape, ...]:
    """CSR2COO: ``nnz`` row numbers."""
    return (node.attrs.dims("nnz") if "nnz" in node.attrs else node.outs[0].shape,)


def coo_to_csr_shape(node: Application) -> tuple[Shape, ...]:
    """COO2CSR: the starts of ``height`` rows, and the end."""
    return ((node.attrs.dims("height")[0] + 1,) if "height" in node.attrs else node.outs[0].shape,)
