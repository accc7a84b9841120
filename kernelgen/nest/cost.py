"""What an expression costs: nanoseconds of arithmetic, and how large it is."""

from __future__ import annotations

from kernelgen.nest.nodes import Call, Expr
from kernelgen.nest.scalars import SCALARS
from kernelgen.nest.walk import calls, subexpressions


def arithmetic_cost(expr: Expr) -> float:
    """Nanoseconds per float32 element on one AVX2 core of the calls in it; loads are not counted."""
    return sum(map(function_cost, calls(expr)), 0.0)


def function_cost(call: Call) -> float:
    """The same of one call, without its operands."""
    return SCALARS[call.function].cost


def node_count(expr: Expr) -> int:
    """The expressions that it is made of, without those in indices."""
    return sum(1 for _ in subexpressions(expr))
