"""What a launch of a nest's kernel needs: how many blocks, which memory of its own, the fields of the tiling struct."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.nest.index import add, floor_divide, subtract
from kernelgen.nest.nodes import For, Index, IndexBinary, IndexOp, LoopKind, Nest, Num, Var
from kernelgen.targets.ascend.machine import Machine


def blocks_of(nest: Nest, machine: Machine, symbols: Mapping[str, int]) -> int:
    """Cores that have something to do: the most turns of a loop that is dealt to them, no more than there are."""
    turns = [1]
    for part in nest.body.statements:
        if isinstance(part, For) and part.kind is LoopKind.BLOCK:
            trips = floor_divide(add(subtract(part.upper, part.lower), Num(part.step - 1)), Num(part.step))
            turns.append(value(trips, symbols))
    return min(max(turns), machine.cores)


def value(index: Index, symbols: Mapping[str, int]) -> int:
    """The value of an index over size symbols."""
    match index:
        case Num(number):
            return number
        case Var(name):
            return symbols[name]
        case IndexBinary(op, left, right):
            a, b = value(left, symbols), value(right, symbols)
            return {
                IndexOp.ADD: a + b,
                IndexOp.SUB: a - b,
                IndexOp.MUL: a * b,
                IndexOp.DIV: a // b if b else 0,
                IndexOp.MOD: a % b if b else 0,
                IndexOp.MIN: min(a, b),
                IndexOp.MAX: max(a, b),
            }[op]
        case _:
            raise ValueError("data decides how many turns a loop has")
