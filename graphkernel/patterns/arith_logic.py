"""Comparisons, logic and selection.

The complement of an order (``not x > y`` as ``x <= y``) is wrong for NaN, though MindSpore counts it among its exact rules.
"""

from __future__ import annotations

from graphkernel.patterns.language import Rewrite, Safety, Term, given, rewrite, rule
from graphkernel.patterns.ranges import NO_NAN
from graphkernel.patterns.terms import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    not_equal,
    select,
)


@rule(safety=Safety.EXACT)
def not_not(x: Term) -> Rewrite:
    return rewrite(logical_not(logical_not(x)), x)


@rule(safety=Safety.EXACT)
def and_itself(x: Term) -> Rewrite:
    return rewrite(logical_and(x, x), x)


@rule(safety=Safety.EXACT)
def or_itself(x: Term) -> Rewrite:
    return rewrite(logical_or(x, x), x)


@rule(safety=Safety.EXACT)
def not_equal_to(x: Term, y: Term) -> Rewrite:
    return rewrite(logical_not(equal(x, y)), not_equal(x, y))


@rule(safety=Safety.EXACT)
def not_unequal(x: Term, y: Term) -> Rewrite:
    return rewrite(logical_not(not_equal(x, y)), equal(x, y))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT, given=given(Safety.EXACT, x=NO_NAN, y=NO_NAN))
def not_greater(x: Term, y: Term) -> Rewrite:
    return rewrite(logical_not(greater(x, y)), less_equal(x, y))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT, given=given(Safety.EXACT, x=NO_NAN, y=NO_NAN))
def not_less_equal(x: Term, y: Term) -> Rewrite:
    return rewrite(logical_not(less_equal(x, y)), greater(x, y))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT, given=given(Safety.EXACT, x=NO_NAN, y=NO_NAN))
def not_less(x: Term, y: Term) -> Rewrite:
    return rewrite(logical_not(less(x, y)), greater_equal(x, y))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT, given=given(Safety.EXACT, x=NO_NAN, y=NO_NAN))
def not_greater_equal(x: Term, y: Term) -> Rewrite:
    return rewrite(logical_not(greater_equal(x, y)), less(x, y))


@rule(safety=Safety.EXACT)
def select_same(c: Term, x: Term) -> Rewrite:
    return rewrite(select(c, x, x), x)


@rule(safety=Safety.EXACT)
def select_by_negation(c: Term, x: Term, y: Term) -> Rewrite:
    return rewrite(select(logical_not(c), x, y), select(c, y, x))


@rule(safety=Safety.EXACT)
def maximum_of_same(x: Term) -> Rewrite:
    return rewrite(maximum(x, x), x)


@rule(safety=Safety.EXACT)
def minimum_of_same(x: Term) -> Rewrite:
    return rewrite(minimum(x, x), x)
