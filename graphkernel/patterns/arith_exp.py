"""Exponentials and logarithms."""

from __future__ import annotations

import numpy as np

from graphkernel.patterns.language import Const, Rewrite, Safety, Term, given, rewrite, rule
from graphkernel.patterns.match import Match
from graphkernel.patterns.ranges import NON_NEGATIVE, bounded
from graphkernel.patterns.terms import exp, log, power, rsqrt, sqrt

MODERATE = bounded(-4.0, 4.0)  # the exponential of twice as much is a normal number of every data type


def _is_small(found: Match) -> bool:
    return bool((np.abs(found.array("c").astype(np.float64)) <= 8).all())


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE))
def log_of_exp(x: Term) -> Rewrite:
    """Needs an exponential that does not overflow."""
    return rewrite(log(exp(x)), x)


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=NON_NEGATIVE))
def exp_of_log(x: Term) -> Rewrite:
    """Needs x >= 0."""
    return rewrite(exp(log(x)), x)


@rule(safety=Safety.ROUNDING)
def log_of_sqrt(x: Term) -> Rewrite:
    return rewrite(log(sqrt(x)), 0.5 * log(x))


@rule(safety=Safety.DOMAIN)
def log_of_rsqrt(x: Term) -> Rewrite:
    """Needs x >= 0 with a plain zero: the root of -0 is -0."""
    return rewrite(log(rsqrt(x)), -0.5 * log(x))


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE, y=MODERATE))
def product_of_exps(x: Term, y: Term) -> Rewrite:
    """Needs exponentials that do not overflow."""
    return rewrite(exp(x) * exp(y), exp(x + y))


@rule(safety=Safety.DOMAIN, given=given(Safety.ROUNDING, x=MODERATE, y=MODERATE))
def quotient_of_exps(x: Term, y: Term) -> Rewrite:
    """Needs exponentials that do not overflow."""
    return rewrite(exp(x) / exp(y), exp(x - y))


@rule(safety=Safety.DOMAIN)
def power_of_exp(x: Term, y: Term) -> Rewrite:
    """Needs exponentials that do not overflow."""
    return rewrite(power(exp(x), y), exp(x * y))


@rule(safety=Safety.DOMAIN)
def product_of_exps_within(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs exponentials that do not overflow."""
    return rewrite((exp(x) * z) * exp(y), exp(x + y) * z)


@rule(safety=Safety.DOMAIN)
def product_of_exps_within_both(w: Term, x: Term, y: Term, z: Term) -> Rewrite:
    """Needs exponentials that do not overflow."""
    return rewrite((exp(x) * w) * (exp(y) * z), exp(x + y) * (w * z))


@rule(safety=Safety.DOMAIN)
def div_by_exp(x: Term, y: Term) -> Rewrite:
    """Needs an exponential that neither overflows nor vanishes."""
    return rewrite(x / exp(y), x * exp(-y))


@rule(safety=Safety.DOMAIN)
def log_of_power(x: Term, c: Const) -> Rewrite:
    """Needs x > 0 and a power that neither overflows nor vanishes."""
    return rewrite(log(power(x, c)), log(abs(x)) * c, when=_is_small)
