"""In which order plans are tried: those first that the cost model thinks fastest."""

from __future__ import annotations

from math import ceil, inf

from kernelgen.errors import ArgumentError, UnsupportedError
from kernelgen.nest.cost import arithmetic_cost
from kernelgen.nest.index import floor_divide, maximum, substitute, subtract
from kernelgen.nest.nodes import Block, For, If, Index, Num, Statement
from kernelgen.plan import ThreadChoice
from kernelgen.stages import Lowered
from kernelgen.targets.cpu.loops.code_plan import with_choices
from kernelgen.targets.cpu.loops.planned_loops import ChosenLoop
from kernelgen.targets.cpu.loops.varying import expressions_of
from kernelgen.targets.cpu.loops.vector_plan import VectorPlan, widest_bytes
from kernelgen.targets.cpu.runtime.llvm import detect_host

ACCESS = 0.1
"""Nanoseconds of an iteration beside its arithmetic."""
TURN = 0.3
"""Nanoseconds of a loop's turn."""
WAKE = 8_000.0
"""Nanoseconds until all threads of a parallel loop are at work and done."""


def estimated(lowered: Lowered, cores: int) -> float:
    """Seconds of a ``lowered`` nest for a CPU with so many ``cores`` before it is compiled; infinite where nobody can tell."""
    if lowered.plan.code is None:
        return inf
    try:
        body = with_choices(lowered.nest, lowered.plan.code, detect_host()).body
        return _nanoseconds(body, {}, cores) / 1e9
    except (UnsupportedError, ArgumentError):
        return inf


def _nanoseconds(statement: Statement, starts: dict[str, Index], cores: int) -> float:
    match statement:
        case Block(statements):
            return sum(_nanoseconds(inner, starts, cores) for inner in statements)
        case If(_, body):
            return _nanoseconds(body, starts, cores)
        case For():
            return _loop(statement, starts, cores)
        case _:
            return ACCESS + sum(arithmetic_cost(root) for root in expressions_of(statement))


def _loop(loop: For, starts: dict[str, Index], cores: int) -> float:
    first, last = substitute(loop.lower, starts), substitute(loop.upper, starts)
    trips = floor_divide(maximum(subtract(last, first), Num(0)), Num(loop.step))
    if not isinstance(trips, Num):
        return inf
    inner = _nanoseconds(loop.body, {**starts, loop.var: first}, cores)
    plan = loop.plan if isinstance(loop, ChosenLoop) else None
    if isinstance(plan, ThreadChoice) and plan.threads:
        return WAKE + inner * ceil(trips.value / cores)
    if isinstance(plan, VectorPlan):
        turns = ceil(trips.value / plan.lanes)
        registers = plan.lanes * widest_bytes(loop) / detect_host().vector_bytes
        return turns * inner * max(1.0, registers) + TURN * sum(divmod(turns, plan.unroll))
    return trips.value * (inner + TURN)
