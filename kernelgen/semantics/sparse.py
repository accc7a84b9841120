"""CSR operators: a sparse matrix is ``indptr`` (rows + 1), ``indices`` (columns) and ``values``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.composite.scalar_rules import ELEMENTWISE
from kernelgen.semantics.algebra import Array, ArrayAlgebra
from kernelgen.semantics.index import wide_sum
from kernelgen.semantics.shape import result_shape
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.csr import CSR_MUL
from kernelgen.tensor.operators.elemwise import DIV, MUL


def csr_elementwise(operands: Sequence[Array], node: Application) -> Array:
    """CSRMul and CSRDiv: the stored values times (over) the dense elements at their places.

    Dense operands broadcast to ``dense_shape``; dense elements may be rows of further dims, as values may be.
    """
    indptr, indices, values, dense = operands
    met = _met(indptr, indices, dense, node)
    operation = ELEMENTWISE[MUL if node.op is CSR_MUL else DIV]
    return operation(ArrayAlgebra(), [values, met], node)


def csr_reduce_sum(operands: Sequence[Array], node: Application) -> Array:
    """CSRReduceSum: the sum of every row, ``[rows, 1, ...]``."""
    indptr, _, values = operands
    return _row_sums(indptr, values.astype(wide_sum(values)))[:, None]


def csr_matmul(operands: Sequence[Array], node: Application) -> Array:
    """CSRMV and CSRMM: the sparse matrix times a dense vector ``[columns]``, ``[columns, 1]`` or matrix."""
    indptr, indices, values, dense = operands
    kind = wide_sum(values)
    return _row_sums(indptr, values.reshape(-1, *(1,) * (dense.ndim - 1)).astype(kind) * dense[indices].astype(kind))


def csr_gather(operands: Sequence[Array], node: Application) -> Array:
    """CSRGather: the dense elements at the stored places."""
    indptr, indices, dense = operands
    return _met(indptr, indices, dense, node)


def csr_to_coo(operands: Sequence[Array], node: Application) -> Array:
    """CSR2COO: the row number of every stored element."""
    return _row_numbers(operands[0])


def coo_to_csr(operands: Sequence[Array], node: Application) -> Array:
    """COO2CSR: the row starts, from sorted row numbers and the ``height``."""
    height = node.attrs.int("height") if "height" in node.attrs else result_shape(node)[0] - 1
    return np.searchsorted(operands[0], np.arange(height + 1))


def _met(indptr: Array, indices: Array, dense: Array, node: Application) -> Array:
    """The dense element (or row of further dims) at every stored place."""
    rows, columns = node.attrs.ints("dense_shape", dense.shape[:2])[:2]
    return np.broadcast_to(dense, (rows, columns, *dense.shape[2:]))[_row_numbers(indptr), indices]


def _row_numbers(indptr: Array) -> Array:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _row_sums(indptr: Array, values: Array) -> Array:
    sums = np.zeros((len(indptr) - 1, *values.shape[1:]), values.dtype)
    np.add.at(sums, _row_numbers(indptr), values)
    return sums
