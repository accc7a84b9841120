"""Branches that hold for all sizes, blocks and turns are none: what stands in them is done.

total = max(s0, 1)                              total = max(s0, 1)
if (total >= 1) { Exp(y, x, total) }     ->     Exp(y, x, total)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernelgen.ascendc.expressions import Binary, Expression, Number
from kernelgen.ascendc.instructions import For, If, Let, Statement
from kernelgen.machines.ascend.description import Machine
from kernelgen.targets.ascend.proof.scalar_bounds import Bounds


def without_certain(body: Sequence[Statement], machine: Machine) -> tuple[Statement, ...]:
    """The statements without branches ``a >= number`` that :mod:`bounds` shows to be taken."""
    return tuple(_block(body, Bounds(machine.most_blocks)))


def _block(body: Sequence[Statement], bounds: Bounds) -> Iterator[Statement]:
    for statement in body:
        match statement:
            case For(variable, start, stop):
                with bounds.inside():
                    bounds.count(variable, start, stop)
                    inner = tuple(_block(statement.body, bounds))
                yield replace(statement, body=inner)
            case If(condition, then, otherwise):
                if not otherwise and _holds(condition, bounds):
                    yield from _block(then, bounds)
                else:
                    yield _branch(statement, bounds)
            case Let(name, _, value):
                bounds.bind(name, value)
                yield statement
            case _:
                yield statement


def _branch(branch: If, bounds: Bounds) -> If:
    with bounds.inside():
        bounds.suppose(branch.condition)
        then = tuple(_block(branch.then, bounds))
    with bounds.inside():
        otherwise = tuple(_block(branch.otherwise, bounds))
    return replace(branch, then=then, otherwise=otherwise)


def _holds(condition: Expression, bounds: Bounds) -> bool:
    match condition:
        case Binary(">=", left, Number(value)):
            least = bounds.lower(left)
            return least is not None and least > value - 1
        case _:
            return False
