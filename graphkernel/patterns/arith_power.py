"""Powers and roots."""

from __future__ import annotations

from graphkernel.patterns.language import Rewrite, Safety, Term, rewrite, rule
from graphkernel.patterns.terms import power, reciprocal, rsqrt, sqrt


@rule(safety=Safety.EXACT)
def power_one(x: Term) -> Rewrite:
    return rewrite(power(x, 1), x)


@rule(safety=Safety.EXACT)
def power_two(x: Term) -> Rewrite:
    return rewrite(power(x, 2), x * x)


@rule(safety=Safety.ROUNDING, integers=Safety.EXACT)
def power_three(x: Term) -> Rewrite:
    return rewrite(power(x, 3), x * x * x)


@rule(safety=Safety.EXACT)
def power_minus_one(x: Term) -> Rewrite:
    return rewrite(power(x, -1), reciprocal(x))


@rule(safety=Safety.DOMAIN)
def power_half(x: Term) -> Rewrite:
    """Needs x >= 0, since the power of -inf is inf."""
    return rewrite(power(x, 0.5), sqrt(x))


@rule(safety=Safety.EXACT)
def reciprocal_of_sqrt(x: Term) -> Rewrite:
    return rewrite(reciprocal(sqrt(x)), rsqrt(x))


@rule(safety=Safety.ROUNDING)
def reciprocal_of_rsqrt(x: Term) -> Rewrite:
    return rewrite(reciprocal(rsqrt(x)), sqrt(x))


@rule(safety=Safety.DOMAIN)
def rsqrt_of_reciprocal(x: Term) -> Rewrite:
    """Needs x > -inf, whose reciprocal is -0."""
    return rewrite(rsqrt(reciprocal(x)), sqrt(x))


@rule(safety=Safety.ROUNDING)
def div_by_sqrt(x: Term, y: Term) -> Rewrite:
    return rewrite(x / sqrt(y), x * rsqrt(y))


@rule(safety=Safety.ROUNDING)
def div_by_rsqrt(x: Term, y: Term) -> Rewrite:
    return rewrite(x / rsqrt(y), x * sqrt(y))


@rule(safety=Safety.ROUNDING)
def sqrt_of_square(x: Term) -> Rewrite:
    return rewrite(sqrt(x * x), abs(x))


@rule(safety=Safety.DOMAIN)
def sqrt_squared(x: Term) -> Rewrite:
    """Needs x >= 0."""
    return rewrite(sqrt(x) * sqrt(x), x)


@rule(safety=Safety.DOMAIN)
def rsqrt_squared(x: Term) -> Rewrite:
    """Needs x >= 0."""
    return rewrite(rsqrt(x) * rsqrt(x), reciprocal(x))


@rule(safety=Safety.DOMAIN)
def mul_own_rsqrt(x: Term) -> Rewrite:
    """Needs 0 < x < inf."""
    return rewrite(x * rsqrt(x), sqrt(x))


@rule(safety=Safety.DOMAIN)
def div_by_own_sqrt(x: Term) -> Rewrite:
    """Needs 0 < x < inf."""
    return rewrite(x / sqrt(x), sqrt(x))


@rule(safety=Safety.DOMAIN)
def product_of_sqrts(x: Term, y: Term) -> Rewrite:
    """Needs x, y >= 0 and a product that does not overflow."""
    return rewrite(sqrt(x) * sqrt(y), sqrt(x * y))
