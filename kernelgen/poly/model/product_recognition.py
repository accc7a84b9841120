"""Statements that use every element that they read many times: matrix products, convolutions.

    c[i, j] += a[i, k] * b[k, j]        a is the same for all j, b for all i

Such a statement runs fastest when a block of its results stays in registers while the reduction runs: each element that
is loaded is used by a row or a column of the block. It shares no loops with other statements, for they would take the
block apart.
"""

from __future__ import annotations

from kernelgen.nest.index import variables
from kernelgen.poly.model.scop import Access, Statement
from kernelgen.tensor.dims import product

LEAST_COLUMNS = 32
"""Results of a row, two of the widest vectors, from which on they lie in lanes; fewer sums are taken along their terms."""


def is_product(statement: Statement) -> bool:
    """Whether it reduces, no read moves along all dims, and each of two kept dims has a read that the other one lacks."""
    if statement.ordered or not statement.accumulations:
        return False
    kept = kept_names(statement)
    every = {it.name for it in statement.iterators}
    reads = [
        moves(read) & every for read in statement.reads
    ]  # sizes of an image that places are kept inside of move nothing
    dims = sum(it.blocks is None for it in statement.iterators)
    if len(kept) == len(statement.iterators) or any(len(read) >= dims for read in reads):
        return False
    return any(
        p in a and q not in a and q in b and p not in b for p in kept for q in kept for a in reads for b in reads
    )


def has_sides(statement: Statement, least: int) -> bool:
    """Whether it is a product whose reads fall into two groups, each with ``least`` numbers or more of a side of its own.

    Rows are what the first group moves along and the second one does not, columns the other way round; an extent that is
    a symbol is enough. What all reads move along are batches; reads of sums alone belong to either group.
    """
    if not is_product(statement):
        return False
    kept = frozenset(kept_names(statement))
    reads = [moves(read) & kept for read in statement.reads if moves(read) & kept]
    batch = frozenset[str].intersection(*reads)
    sides: list[frozenset[str]] = []
    for names in (read - batch for read in reads):
        meeting = [side for side in sides if side & names]
        sides = [side for side in sides if side not in meeting]
        sides.append(names.union(*meeting))
    extents = {it.name: it.extent for it in statement.iterators}
    counts = [product(extents[name] for name in sorted(side)) for side in sides if side]
    return len(counts) == 2 and all(not isinstance(count, int) or count >= least for count in counts)


def is_row_of_constant(statement: Statement, constants: frozenset[str]) -> bool:
    """Whether it multiplies one row by all columns of one of the ``constants``: ``y[j] += x[k] * w[k, j]``.

    Every element of the constant is read once, so that memory bounds it: its columns are many streams beside each other,
    which is what a panel of them is laid out for. What is read otherwise stays along the columns.
    """
    kept = frozenset(kept_names(statement))
    names = frozenset(it.name for it in statement.iterators)
    if statement.ordered or not kept or kept == names or not _has_columns(statement, kept):
        return False
    others = [read for read in statement.reads if read.buffer.name not in constants]
    held = [read for read in statement.reads if read.buffer.name in constants]
    return bool(others) and all(moves(read).isdisjoint(kept) for read in others) and names in map(moves, held)


def _has_columns(statement: Statement, kept: frozenset[str]) -> bool:
    """Whether there are vectors of results, along one axis."""
    extents = [it.extent for it in statement.iterators if it.name in kept]
    return len(extents) == 1 and isinstance(extents[0], int) and extents[0] >= LEAST_COLUMNS


def kept_names(statement: Statement) -> tuple[str, ...]:
    """The iterators that address what is accumulated, in order."""
    written = frozenset(name for part in statement.accumulations for i in part.index for name in variables(i))
    return tuple(it.name for it in statement.iterators if it.name in written)


def moves(access: Access) -> frozenset[str]:
    """The iterators that an access moves along."""
    names = (name for i in access.index for name in variables(i))
    return frozenset(names)
