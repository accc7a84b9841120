"""Complex numbers and their parts."""

from __future__ import annotations

from graphkernel.patterns.language import Rewrite, Safety, Term, rewrite, rule
from graphkernel.patterns.terms import complex_of, imaginary_part, real_part


@rule(safety=Safety.EXACT)
def real_part_of_complex(x: Term, y: Term) -> Rewrite:
    return rewrite(real_part(complex_of(x, y)), x)


@rule(safety=Safety.EXACT)
def imaginary_part_of_complex(x: Term, y: Term) -> Rewrite:
    return rewrite(imaginary_part(complex_of(x, y)), y)
