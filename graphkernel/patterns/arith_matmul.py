"""A bias behind a matrix product becomes its third operand."""

from __future__ import annotations

from graphkernel.patterns.language import Attributes, Rewrite, Safety, Term, rewrite, rule
from graphkernel.patterns.match import Match
from graphkernel.patterns.terms import batch_matmul, matmul


def _is_bias(found: Match) -> bool:
    """One element a column."""
    return found.type("c").rank == 1 and found.type("c").shape == found.result.shape[-1:]


@rule(safety=Safety.EXACT)
def matmul_with_bias(x: Term, y: Term, c: Term, a: Attributes) -> Rewrite:
    return rewrite(matmul(x, y, attributes=a) + c, matmul(x, y, c, attributes=a), when=_is_bias)


@rule(safety=Safety.EXACT)
def batch_matmul_with_bias(x: Term, y: Term, c: Term, a: Attributes) -> Rewrite:
    return rewrite(batch_matmul(x, y, attributes=a) + c, batch_matmul(x, y, c, attributes=a), when=_is_bias)
