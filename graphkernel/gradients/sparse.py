"""Gradients of operators on compressed sparse rows: by the stored values, and by dense operands."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.means import summed_to
from graphkernel.gradients.base import Application, Cotangents, gradient
from graphkernel.gradients.indexing import rows_at
from graphkernel.gradients.shapes import reshaped
from graphkernel.ops import Tensor
from graphkernel.ops.tensor.apply import apply
from kernelgen.tensor.operators import csr
from kernelgen.tensor.operators.creation import FILL_V2
from kernelgen.tensor.operators.csr import CSR_DIV, CSR_MUL, CSR_TO_COO
from kernelgen.tensor.operators.scatter import TENSOR_SCATTER_ADD, UNSORTED_SEGMENT_SUM
from kernelgen.tensor.types import Shape


def _rows(indptr: Tensor, indices: Tensor) -> Tensor:
    """The row of each stored element."""
    return apply(CSR_TO_COO, indptr, nnz=indices.shape[0])


def _dense(values: Tensor, indptr: Tensor, indices: Tensor, shape: Shape) -> Tensor:
    """The whole matrix of stored values."""
    columns = (ops.expand_dims(ops.cast(of, "int64"), -1) for of in (_rows(indptr, indices), indices))
    zero = Tensor(values.builder.constant(0, values.dtype), values.builder)
    zeros = apply(FILL_V2, zero, shape=(*shape[:2], *values.shape[1:]))
    return apply(TENSOR_SCATTER_ADD, zeros, ops.concat(tuple(columns), 1), values)


@gradient(CSR_MUL)
def csr_mul(of: Application) -> Cotangents:
    """CSRMul of dy; dy * values at their places"""
    indptr, indices, values, dense = of.operands
    there = _dense(of.dy * values, indptr, indices, of.attrs.dims("dense_shape"))
    return [None, None, apply(CSR_MUL, indptr, indices, of.dy, dense, **of.attrs), summed_to(there, dense.shape)]


@gradient(CSR_DIV)
def csr_div(of: Application) -> Cotangents:
    """CSRDiv of dy; CSRDiv of -dy * y at its places"""
    indptr, indices, _, dense = of.operands
    quotients = apply(CSR_DIV, indptr, indices, -of.dy * of.results[0], dense, **of.attrs)
    there = _dense(quotients, indptr, indices, of.attrs.dims("dense_shape"))
    return [None, None, apply(CSR_DIV, indptr, indices, of.dy, dense, **of.attrs), summed_to(there, dense.shape)]


@gradient(csr.CSR_GATHER)
def csr_gather(of: Application) -> Cotangents:
    """dy at its places"""
    indptr, indices, _ = of.operands
    return [None, None, _dense(of.dy, indptr, indices, of.attrs.dims("dense_shape"))]


@gradient(csr.CSR_REDUCE_SUM)
def csr_reduce_sum(of: Application) -> Cotangents:
    """dy of the row of each stored element"""
    indptr, indices, _ = of.operands
    rows = reshaped(of.dy, (of.dy.shape[0], *of.dy.shape[2:]))
    return [None, None, rows_at(rows, _rows(indptr, indices))]


def _product(of: Application) -> Cotangents:
    """The product of a row of dy with a row of the dense operand; the transposed matrix times dy"""
    indptr, indices, values, dense = of.operands
    met = rows_at(of.dy, _rows(indptr, indices))
    by_values = ops.reduce_sum(met * rows_at(dense, indices), -1)
    scaled = met * ops.expand_dims(values, -1)
    return [None, None, by_values, apply(UNSORTED_SEGMENT_SUM, scaled, indices, num_segments=dense.shape[0])]


CSR_MV = gradient(csr.CSR_MV)(_product)
CSR_MM = gradient(csr.CSR_MM)(_product)
