"""Statements that use every element that they read many times: matrix products, convolutions.

    c[i, j] += a[i, k] * b[k, j]        a is the same for all j, b for all i

Such a statement runs fastest when a block of its results stays in registers while the reduction runs: each element that
is loaded is used by a row or a column of the block. It shares no loops with other statements, for they would take the
block apart.
"""

from __future__ import annotations

from kernelgen.nest.index import variables
from kernelgen.poly.scop import Access, Statement


def is_product(statement: Statement) -> bool:
    """Whether it reduces, no read moves along all dims, and each of two kept dims has a read that the other one lacks."""
    if statement.ordered or not statement.accumulations:
        return False
    kept = kept_names(statement)
    reads = [moves(read) for read in statement.reads]
    dims = sum(it.blocks is None for it in statement.iterators)
    if len(kept) == len(statement.iterators) or any(len(read) >= dims for read in reads):
        return False
    return any(
        p in a and q not in a and q in b and p not in b for p in kept for q in kept for a in reads for b in reads
    )


def kept_names(statement: Statement) -> tuple[str, ...]:
    """The iterators that address what is accumulated, in order."""
    written = frozenset(name for part in statement.accumulations for i in part.index for name in variables(i))
    return tuple(it.name for it in statement.iterators if it.name in written)


def moves(access: Access) -> frozenset[str]:
    """The iterators that an access moves along."""
    names = (name for i in access.index for name in variables(i))
    return frozenset(names)
