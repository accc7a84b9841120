"""Powers and roots."""

from __future__ import annotations

from graphkernel.patterns.language import Const, Rewrite, Safety, Term, given, rewrite, rule
from graphkernel.patterns.ranges import NON_NEGATIVE, bounded
from graphkernel.patterns.terms import power, reciprocal, rsqrt, sqrt

MODERATE = bounded(1e-2, 1e2)


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


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=NON_NEGATIVE))
def power_half(x: Term) -> Rewrite:
    """Needs x >= 0, since the power of -inf is inf."""
    return rewrite(power(x, 0.5), sqrt(x))


@rule(safety=Safety.EXACT)
def reciprocal_of_sqrt(x: Term) -> Rewrite:
    return rewrite(reciprocal(sqrt(x)), rsqrt(x))


@rule(safety=Safety.EXACT)
def reciprocal_of_rsqrt(x: Term) -> Rewrite:
    return rewrite(reciprocal(rsqrt(x)), sqrt(x))


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE))
def rsqrt_of_reciprocal(x: Term) -> Rewrite:
    """Needs x > -inf, whose reciprocal is -0."""
    return rewrite(rsqrt(reciprocal(x)), sqrt(x))


@rule(safety=Safety.ROUNDING)
def div_by_sqrt(x: Term, y: Term) -> Rewrite:
    return rewrite(x / sqrt(y), x * rsqrt(y))


@rule(safety=Safety.ROUNDING)
def div_by_rsqrt(x: Term, y: Term) -> Rewrite:
    return rewrite(x / rsqrt(y), x * sqrt(y))


@rule(safety=Safety.EXACT)
def sqrt_of_square(x: Term) -> Rewrite:
    return rewrite(sqrt(x * x), abs(x))


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=NON_NEGATIVE))
def sqrt_squared(x: Term) -> Rewrite:
    """Needs x >= 0."""
    return rewrite(sqrt(x) * sqrt(x), x)


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE))
def rsqrt_squared(x: Term) -> Rewrite:
    """Needs x >= 0."""
    return rewrite(rsqrt(x) * rsqrt(x), reciprocal(x))


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE))
def mul_own_rsqrt(x: Term) -> Rewrite:
    """Needs 0 < x < inf."""
    return rewrite(x * rsqrt(x), sqrt(x))


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE))
def div_by_own_sqrt(x: Term) -> Rewrite:
    """Needs 0 < x < inf."""
    return rewrite(x / sqrt(x), sqrt(x))


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE, y=MODERATE))
def product_of_sqrts(x: Term, y: Term) -> Rewrite:
    """Needs x, y >= 0 and a product that does not overflow."""
    return rewrite(sqrt(x) * sqrt(y), sqrt(x * y))


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE, y=MODERATE))
def product_of_rsqrts(x: Term, y: Term) -> Rewrite:
    """Needs x, y > 0 and a product that does not overflow."""
    return rewrite(rsqrt(x) * rsqrt(y), rsqrt(x * y))


@rule(safety=Safety.DOMAIN)
def sqrt_squared_within(x: Term, y: Term) -> Rewrite:
    """Needs x >= 0 and values of like size."""
    return rewrite((y * sqrt(x)) * sqrt(x), y * x)


@rule(safety=Safety.DOMAIN)
def sqrt_squared_within_both(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs x >= 0 and values of like size."""
    return rewrite((y * sqrt(x)) * (z * sqrt(x)), (y * x) * z)


@rule(safety=Safety.DOMAIN)
def rsqrt_squared_within(x: Term, y: Term) -> Rewrite:
    """Needs x > 0 and values of like size."""
    return rewrite((y * rsqrt(x)) * rsqrt(x), y / x)


@rule(safety=Safety.DOMAIN)
def rsqrt_squared_within_both(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs x > 0 and values of like size."""
    return rewrite((y * rsqrt(x)) * (z * rsqrt(x)), (y * z) / x)


@rule(safety=Safety.EXACT)
def rsqrt_of_inverse_square(x: Term) -> Rewrite:
    return rewrite(rsqrt(power(x, -2)), abs(x))


@rule(safety=Safety.DOMAIN)
def div_by_power(x: Term, y: Term, c: Const) -> Rewrite:
    """Needs a power that neither overflows nor vanishes."""
    return rewrite(x / power(y, c), x * power(y, -c))
