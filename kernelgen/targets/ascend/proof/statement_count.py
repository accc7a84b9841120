"""How many statements a launch runs: what the simulator's time is made of, found without running it.

    for b in 0..4 { copy; for k in 0..n { copy; add; copy } }        4 x (1 + 3 n) for each block

A loop's turns are counted where it starts, with the first value of the loops around it: an estimate where those decide.
Both sides of a branch count: one may be another core's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from kernelgen.ascendc.instructions import For, If, Kernel, Let, Statement
from kernelgen.simulators.ascendc.core.scalars import BadScalar, Scope, Value

UNKNOWN_TURNS = 8
"""Turns of a loop that data decides."""


def statements_run(kernel: Kernel, blocks: int, tiling: Mapping[str, int]) -> int:
    """The statements that all blocks run, estimated from the first block, which has the most to do."""
    values: dict[str, Value] = {"GetBlockIdx": 0, "GetBlockNum": blocks, "GetSubBlockIdx": 0, "true": 1, "false": 0}
    return blocks * _count(kernel.body, Scope(values, tiling, _unread), values)


def _unread(tensor: str, index: int) -> Value:
    raise BadScalar(f"{tensor}[{index}] is data")


def _count(body: Sequence[Statement], scope: Scope, values: dict[str, Value]) -> int:
    total = 0
    for statement in body:
        total += 1
        match statement:
            case For():
                turns, start = _turns(statement, scope)
                values[statement.variable] = start
                total += turns * _count(statement.body, scope, values)
            case If(then=then, otherwise=otherwise):
                total += sum(_count(part, scope, values) for part in (then, otherwise))
            case Let(name, _, value):
                with suppress(BadScalar):  # data decides it, and what depends on it is not known either
                    values[name] = scope.value(value)
            case _:
                pass
    return total


def _turns(loop: For, scope: Scope) -> tuple[int, int]:
    """The turns of a loop and its first value."""
    try:
        start, stop, step = (scope.integer(part) for part in (loop.start, loop.stop, loop.step))
    except BadScalar:
        return UNKNOWN_TURNS, 0
    return max(0, -(-(stop - start) // max(step, 1))), start
