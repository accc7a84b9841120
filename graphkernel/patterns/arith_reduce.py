"""Reductions of reductions, of signs and of single elements."""

from __future__ import annotations

from graphkernel.patterns.language import Attributes, Const, Rewrite, Safety, Term, rewrite, rule
from graphkernel.patterns.layout import to_result_shape
from graphkernel.patterns.match import Match
from graphkernel.patterns.terms import reduce_max, reduce_min, reduce_sum, reshape
from kernelgen.tensor.operators.type_rules import axes_of
from kernelgen.tensor.types import Attrs


def _keeps_alike(found: Match) -> bool:
    return found.attributes("inner").bool("keep_dims", False) == found.attributes("outer").bool("keep_dims", False)


def _merged(found: Match) -> Attrs:
    """The axes of both reductions, in the numbering of the operand."""
    inner, outer = found.attributes("inner"), found.attributes("outer")
    rank = found.type("x").rank
    first = axes_of(inner.ints("axis", ()), rank)
    left = tuple(range(rank)) if inner.bool("keep_dims", False) else tuple(a for a in range(rank) if a not in first)
    second = tuple(left[axis] for axis in axes_of(outer.ints("axis", ()), len(left)))
    return outer.with_(axis=tuple(sorted({*first, *second})))


def _reduces_ones(found: Match) -> bool:
    shape = found.type("x").shape
    return all(shape[axis] == 1 for axis in axes_of(found.attributes("a").ints("axis", ()), len(shape)))


def _leaves_the_sum(found: Match) -> bool:
    """True when the constant is the same for all that one sum adds, and does not broadcast the operand."""
    operand, constant = found.type("x"), found.type("c")
    if found.root.args[0].type.shape != operand.shape:
        return False
    missing = operand.rank - constant.rank
    reduced = axes_of(found.attributes("a").ints("axis", ()), operand.rank)
    return all(extent == 1 or missing + axis not in reduced for axis, extent in enumerate(constant.shape))


@rule(safety=Safety.EXACT)
def sum_of_sum(x: Term, inner: Attributes, outer: Attributes) -> Rewrite:
    return rewrite(
        reduce_sum(reduce_sum(x, attributes=inner), attributes=outer),
        reduce_sum(x, attributes=_merged),
        when=_keeps_alike,
    )


@rule(safety=Safety.EXACT)
def max_of_max(x: Term, inner: Attributes, outer: Attributes) -> Rewrite:
    return rewrite(
        reduce_max(reduce_max(x, attributes=inner), attributes=outer),
        reduce_max(x, attributes=_merged),
        when=_keeps_alike,
    )


@rule(safety=Safety.EXACT)
def min_of_min(x: Term, inner: Attributes, outer: Attributes) -> Rewrite:
    return rewrite(
        reduce_min(reduce_min(x, attributes=inner), attributes=outer),
        reduce_min(x, attributes=_merged),
        when=_keeps_alike,
    )


@rule(safety=Safety.ROUNDING, integers=Safety.EXACT)
def sum_of_negated(x: Term, a: Attributes) -> Rewrite:
    return rewrite(reduce_sum(-x, attributes=a), -reduce_sum(x, attributes=a))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT)
def sum_of_scaled(x: Term, c: Const, a: Attributes) -> Rewrite:
    """Needs sums that do not overflow."""
    return rewrite(reduce_sum(x * c, attributes=a), reduce_sum(x, attributes=a) * c, when=_leaves_the_sum)


@rule(safety=Safety.DOMAIN)
def sum_of_quotient(x: Term, c: Const, a: Attributes) -> Rewrite:
    """Needs sums that do not overflow."""
    return rewrite(reduce_sum(x / c, attributes=a), reduce_sum(x, attributes=a) / c, when=_leaves_the_sum)


@rule(safety=Safety.EXACT)
def sum_of_one(x: Term, a: Attributes) -> Rewrite:
    """A sum starts from 0, so that of -0 is 0."""
    return rewrite(reduce_sum(x, attributes=a), reshape(x, attributes=to_result_shape) + 0.0, when=_reduces_ones)


@rule(safety=Safety.EXACT)
def max_of_one(x: Term, a: Attributes) -> Rewrite:
    return rewrite(reduce_max(x, attributes=a), reshape(x, attributes=to_result_shape), when=_reduces_ones)


@rule(safety=Safety.EXACT)
def min_of_one(x: Term, a: Attributes) -> Rewrite:
    return rewrite(reduce_min(x, attributes=a), reshape(x, attributes=to_result_shape), when=_reduces_ones)
