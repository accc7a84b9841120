"""Exponentials and logarithms."""

from __future__ import annotations

from graphkernel.patterns.language import Rewrite, Safety, Term, rewrite, rule
from graphkernel.patterns.terms import exp, log, power, rsqrt, sqrt


@rule(safety=Safety.DOMAIN)
def log_of_exp(x: Term) -> Rewrite:
    """Needs an exponential that does not overflow."""
    return rewrite(log(exp(x)), x)


@rule(safety=Safety.DOMAIN)
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


@rule(safety=Safety.DOMAIN)
def product_of_exps(x: Term, y: Term) -> Rewrite:
    """Needs exponentials that do not overflow."""
    return rewrite(exp(x) * exp(y), exp(x + y))


@rule(safety=Safety.DOMAIN)
def quotient_of_exps(x: Term, y: Term) -> Rewrite:
    """Needs exponentials that do not overflow."""
    return rewrite(exp(x) / exp(y), exp(x - y))


@rule(safety=Safety.DOMAIN)
def power_of_exp(x: Term, y: Term) -> Rewrite:
    """Needs exponentials that do not overflow."""
    return rewrite(power(exp(x), y), exp(x * y))
