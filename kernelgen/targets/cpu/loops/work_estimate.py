"""How long a nest takes on one core, roughly: enough to decide about threads and about releasing the interpreter lock."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.nest.cost import arithmetic_cost
from kernelgen.nest.index import add, floor_divide, maximum, multiply, substitute, subtract
from kernelgen.nest.nodes import Block, For, If, Index, Num, Statement
from kernelgen.targets.cpu.loops.varying import expressions_of

TICKS_PER_NANOSECOND = 100
_MEMORY_COST = 0.1


def work(statement: Statement, starts: Mapping[str, Index] | None = None) -> Index:
    """The estimated time in hundredths of a nanosecond, over the variables in scope at the statement.

    ``starts`` maps the variables of inner loops to their first value, at which inner bounds are taken.
    """
    starts = starts or {}
    match statement:
        case Block(statements):
            total: Index = Num(0)
            for inner in statements:
                total = add(total, work(inner, starts))
            return total
        case If(_, body):
            return work(body, starts)
        case For(var, lower, upper, body):
            first, last = substitute(lower, starts), substitute(upper, starts)
            trips = floor_divide(maximum(subtract(last, first), Num(0)), Num(statement.step))
            return multiply(work(body, {**starts, var: first}), trips)
        case _:
            nanoseconds = _MEMORY_COST + sum(arithmetic_cost(root) for root in expressions_of(statement))
            return Num(int(nanoseconds * TICKS_PER_NANOSECOND))
