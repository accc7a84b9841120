"""Sums, differences and signs."""

from __future__ import annotations

from graphkernel.patterns.language import Const, Rewrite, Safety, Term, given, rewrite, rule
from graphkernel.patterns.ranges import bounded

FINITE = bounded(-60000.0, 60000.0)
MODERATE = bounded(-100.0, 100.0)


@rule(safety=Safety.EXACT)
def add_negative_zero(x: Term) -> Rewrite:
    """Only -0 is neutral for every float: -0 + 0 is 0."""
    return rewrite(x + -0.0, x)


@rule(safety=Safety.ROUNDING, integers=Safety.EXACT)
def add_zero(x: Term) -> Rewrite:
    return rewrite(x + 0.0, x)


@rule(safety=Safety.EXACT)
def sub_zero(x: Term) -> Rewrite:
    return rewrite(x - 0.0, x)


@rule(safety=Safety.EXACT)
def double_negation(x: Term) -> Rewrite:
    return rewrite(-(-x), x)


@rule(safety=Safety.EXACT)
def add_negated(x: Term, y: Term) -> Rewrite:
    return rewrite(x + -y, x - y)


@rule(safety=Safety.EXACT)
def sub_negated(x: Term, y: Term) -> Rewrite:
    return rewrite(x - -y, x + y)


@rule(safety=Safety.EXACT)
def sub_constant(x: Term, c: Const) -> Rewrite:
    """One spelling for constants, so that sums of them meet."""
    return rewrite(x - c, x + -c)


@rule(safety=Safety.ROUNDING, integers=Safety.EXACT)
def negated_difference(x: Term, y: Term) -> Rewrite:
    return rewrite(-(x - y), y - x)


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT, given=given(Safety.EXACT, x=FINITE))
def sub_itself(x: Term) -> Rewrite:
    """Needs finite values: inf - inf is NaN."""
    return rewrite(x - x, 0)


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT)
def add_then_sub(x: Term, y: Term) -> Rewrite:
    """Needs values of like size: the sum may have lost x."""
    return rewrite((x + y) - y, x)


@rule(safety=Safety.ROUNDING, integers=Safety.EXACT)
def add_two_constants(x: Term, a: Const, b: Const) -> Rewrite:
    return rewrite((x + a) + b, x + (a + b))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT, given=given(Safety.ROUNDING, x=MODERATE, y=MODERATE, z=MODERATE))
def add_common_factor(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs products that do not overflow."""
    return rewrite(x * y + x * z, x * (y + z))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT, given=given(Safety.ROUNDING, x=MODERATE, y=MODERATE, z=MODERATE))
def sub_common_factor(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs products that do not overflow. MindSpore's rule 2.4 has the sign of this one wrong."""
    return rewrite(x * y - x * z, x * (y - z))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT)
def add_and_sub_same(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs values of like size: the sums may have lost the others."""
    return rewrite((x + y) + (z - x), y + z)
