"""Operators as functions on terms, for writing rules: ``exp(x) * exp(y)``."""

from __future__ import annotations

from typing import Protocol

from graphkernel.patterns.language import Apply, Attributes, Computed, Term, term
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.complex_numbers import C_IMAG, C_REAL, COMPLEX
from kernelgen.tensor.operators.elemwise import EXP, LOG, MAXIMUM, MINIMUM, POW, RECIPROCAL, RSQRT, SQRT
from kernelgen.tensor.operators.layout import LAYOUT_TRANSFORM
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.operators.reduce import REDUCE_MAX, REDUCE_MIN, REDUCE_SUM
from kernelgen.tensor.operators.select import (
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    LOGICAL_AND,
    LOGICAL_NOT,
    LOGICAL_OR,
    NOT_EQUAL,
    SELECT,
)
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE, TRANSPOSE


class TermFunction(Protocol):
    """Applies an operator to terms."""

    def __call__(self, *args: Term | float, attributes: Attributes | Computed | None = None) -> Term:
        """The application."""
        ...


def function(op: Operator) -> TermFunction:
    """The function of any operator, for rules on operators without an entry below."""

    def apply(*args: Term | float, attributes: Attributes | Computed | None = None) -> Term:
        return Apply(op, tuple(term(arg) for arg in args), attributes)

    return apply


reciprocal = function(RECIPROCAL)
power = function(POW)
sqrt = function(SQRT)
rsqrt = function(RSQRT)
exp = function(EXP)
log = function(LOG)
maximum = function(MAXIMUM)
minimum = function(MINIMUM)

select = function(SELECT)
logical_not = function(LOGICAL_NOT)
logical_and = function(LOGICAL_AND)
logical_or = function(LOGICAL_OR)
equal = function(EQUAL)
not_equal = function(NOT_EQUAL)
less = function(LESS)
less_equal = function(LESS_EQUAL)
greater = function(GREATER)
greater_equal = function(GREATER_EQUAL)

cast = function(CAST)
reduce_sum = function(REDUCE_SUM)
reduce_max = function(REDUCE_MAX)
reduce_min = function(REDUCE_MIN)
reshape = function(RESHAPE)
transpose = function(TRANSPOSE)
broadcast_to = function(BROADCAST_TO)
layout_transform = function(LAYOUT_TRANSFORM)
strided_slice = function(STRIDED_SLICE)

complex_of = function(COMPLEX)
real_part = function(C_REAL)
imaginary_part = function(C_IMAG)

matmul = function(MATMUL)
batch_matmul = function(BATCH_MATMUL)
