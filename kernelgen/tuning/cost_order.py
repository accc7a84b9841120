"""In which order plans are tried: those first that the cost model thinks fastest."""

from __future__ import annotations

from math import ceil, inf

from kernelgen.errors import ArgumentError, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.nest.cost import arithmetic_cost
from kernelgen.nest.index import floor_divide, maximum, substitute, subtract
from kernelgen.nest.nodes import Block, For, If, Index, Num, Statement
from kernelgen.plan import ThreadChoice, VectorChoice
from kernelgen.targets.cpu.loops.code_plan import with_choices
from kernelgen.targets.cpu.loops.planned_loops import ChosenLoop
from kernelgen.targets.cpu.loops.vector_plan import expressions_of
from kernelgen.targets.cpu.runtime.llvm import detect_host

ACCESS = 0.1
"""Nanoseconds of an iteration beside its arithmetic."""
TURN = 0.3
"""Nanoseconds of a loop's turn."""
WAKE = 8_000.0
"""Nanoseconds until all threads of a parallel loop are at work and done."""


def estimated(kernel: Kernel, cores: int) -> float:
    """Seconds as the target's model has them, on so many ``cores`` where it is a CPU's; infinite where it cannot tell."""
    try:
        if kernel.target == "gpu":
            found = kernel.estimate()
            return found.seconds if found else inf
        if kernel.target != "cpu" or kernel.plan.code is None:
            return inf
        body = with_choices(kernel.nest, kernel.plan.code, detect_host()).body
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
    choice = loop.plan if isinstance(loop, ChosenLoop) else None
    if isinstance(choice, ThreadChoice) and choice.threads:
        return WAKE + inner * ceil(trips.value / cores)
    if isinstance(choice, VectorChoice):
        turns = ceil(trips.value / choice.lanes)
        return turns * inner + TURN * ceil(turns / choice.copies)
    return trips.value * (inner + TURN)
