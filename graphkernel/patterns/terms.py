"""Operators as functions on terms, for writing rules: ``exp(x) * exp(y)``."""

from __future__ import annotations

from typing import Protocol

from graphkernel.ir.opdef import OpDef
from graphkernel.ops import cast as casts, elemwise, reduce as reductions, select as selections, shape as shapes
from graphkernel.patterns.language import Apply, Attributes, Computed, Term, term


class TermFunction(Protocol):
    """Applies an operator to terms."""

    def __call__(self, *args: Term | float, attributes: Attributes | Computed | None = None) -> Term:
        """The application."""
        ...


def function(op: OpDef) -> TermFunction:
    """The function of any operator, for rules on operators without an entry below."""

    def apply(*args: Term | float, attributes: Attributes | Computed | None = None) -> Term:
        return Apply(op, tuple(term(arg) for arg in args), attributes)

    return apply


reciprocal = function(elemwise.RECIPROCAL)
power = function(elemwise.POW)
sqrt = function(elemwise.SQRT)
rsqrt = function(elemwise.RSQRT)
exp = function(elemwise.EXP)
log = function(elemwise.LOG)
maximum = function(elemwise.MAXIMUM)
minimum = function(elemwise.MINIMUM)

select = function(selections.SELECT)
logical_not = function(selections.LOGICAL_NOT)
logical_and = function(selections.LOGICAL_AND)
logical_or = function(selections.LOGICAL_OR)
equal = function(selections.EQUAL)
not_equal = function(selections.NOT_EQUAL)
less = function(selections.LESS)
less_equal = function(selections.LESS_EQUAL)
greater = function(selections.GREATER)
greater_equal = function(selections.GREATER_EQUAL)

cast = function(casts.CAST)
reduce_sum = function(reductions.REDUCE_SUM)
reduce_max = function(reductions.REDUCE_MAX)
reduce_min = function(reductions.REDUCE_MIN)
reshape = function(shapes.RESHAPE)
transpose = function(shapes.TRANSPOSE)
broadcast_to = function(shapes.BROADCAST_TO)
