"""Products of bytes with a constant whose sums lie in registers of matrices, which take the bytes of many rows at once.

rows and columns in whole blocks    parallel j by columns; i by rows; rows i; k; vector j
rows below them                     parallel j by columns; rows i; k; vector j
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelgen.nest.marks import ROWS, VECTOR
from kernelgen.nest.walk import calls_of
from kernelgen.plan import CpuPlan, LoopPlan, PiecePlan, WholeTiles
from kernelgen.poly.mapping.axis import Axis, Band, element_stride
from kernelgen.poly.model.product_recognition import moves
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import INT8, UINT8

MATRIX_BLOCK = 32
"""Rows and columns of a block: two by two registers of sums, and two for each operand."""

LEAST_BLOCK = 12
"""Rows of a block, below which registers wait for their words."""

LEAST_ROWS, LEAST_TERMS = 8, 64
"""Below which vectors are faster: each block sets registers up, and a step takes 64 terms."""


def takes_matrices(band: Band, row: int | None, column: int, limits: CpuPlan) -> bool:
    """Whether registers of matrices, within the ``limits``, hold the sums of a ``band``, a product with a constant whose
    members ``row`` and ``column`` are: one of bytes, of enough rows and terms.
    """
    terms = [axis for axis in band.axes if not axis.coincident][-1]
    extents = [None if row is None else band.axes[row].extents[0], terms.extents[0]]
    least = zip(extents, (LEAST_ROWS, LEAST_TERMS), strict=True)
    is_long = all(isinstance(extent, int) and extent >= few for extent, few in least)
    return limits.unit.has_matrices and is_long and _multiplies_bytes(band, column, terms)


def _multiplies_bytes(band: Band, column: int, terms: Axis) -> bool:
    """Whether a statement adds up nothing but products of bytes: with a sign along columns, and without one along terms."""
    ((statement, name),), ((_, term),) = band.axes[column].follows, terms.follows
    along = {read.buffer.dtype: read for read in statement.reads}
    functions = {each.function for part in statement.body for each in calls_of(part)}
    if len(statement.reads) != 2 or along.keys() != {INT8, UINT8} or not functions <= {"cast", "mul"}:
        return False
    return name in moves(along[INT8]) and element_stride(along[UINT8], term) == 1


def rows_of_block(rows: Dim) -> int:
    """How many of the ``rows`` a block has: as many as divide all of them, where such a block is not too low."""
    assert isinstance(rows, int), "of other products no block is of matrices"
    whole = max(count for count in range(1, MATRIX_BLOCK + 1) if rows % count == 0)
    return whole if whole >= LEAST_BLOCK else min(rows, MATRIX_BLOCK)


def matrix_pieces(row: int, column: int, sums: Sequence[int], rows: Dim, count: int) -> Iterator[PiecePlan]:
    """The loops inside a panel over the members ``row``, ``sums`` and ``column``, for whole blocks of ``count`` of the ``rows``
    and for what is left of them.
    """
    inner = (LoopPlan(row, mark=ROWS), *map(LoopPlan, sums), LoopPlan(column, mark=VECTOR))
    if rows != count:
        yield PiecePlan((LoopPlan(row, count), *inner), (WholeTiles(row, count),))
    yield PiecePlan(inner)
