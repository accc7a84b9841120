"""Iterations of the loops over blocks as numbers: ``item`` counts them, its digits are the loops' variables.

block i in 0..M { block j in 0..N          ->    bind i = item / N; bind j = item mod N
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import THREAD_INDICES, Block, Compare, For, Index, LoopKind, Num, Var

ITEM = "item"
FIRST = Compare("==", Var(THREAD_INDICES[0]), Num(0))


def block_loops(body: Block) -> tuple[list[For], Block]:
    """The loops over blocks that are directly inside each other and a rectangle, and what they hold."""
    loops: list[For] = []
    while len(body.statements) == 1 and isinstance(part := body.statements[0], For):
        bounded = not (ix.variables(part.lower) | ix.variables(part.upper)) & {loop.var for loop in loops}
        if part.kind is not LoopKind.BLOCK or not bounded:
            break
        loops.append(part)
        body = part.body
    return loops, body


def trips(loop: For) -> Index:
    """How often a loop runs."""
    return ix.floor_divide(ix.add(ix.subtract(loop.upper, loop.lower), Num(loop.step - 1)), Num(loop.step))


def iterations(loops: Sequence[For]) -> Index:
    """How often what loops that are a rectangle hold runs."""
    total: Index = Num(1)
    for loop in loops:
        total = ix.multiply(total, trips(loop))
    return total


def digits(number: Index, loops: Sequence[For], count: int = 1) -> list[Index]:
    """The value of the variable of each of ``loops`` in iteration ``number`` of all of them, the innermost one running
    fastest.

    The innermost loop is taken ``count`` iterations at once; its value is the first of them.
    """
    found: list[Index] = []
    scale: Index = Num(1)
    for loop in reversed(loops):
        step = count if loop is loops[-1] else 1
        radix = ix.floor_divide(trips(loop), Num(step))
        digit = ix.floor_divide(number, scale)
        digit = digit if loop is loops[0] else ix.modulo(digit, radix)
        found.append(ix.add(ix.multiply(digit, Num(step * loop.step)), loop.lower))
        scale = ix.multiply(scale, radix)
    return found[::-1]


def divides(divisor: int, total: Index) -> bool:
    """Whether the divisor certainly divides the number."""
    return divisor == 1 or (isinstance(total, Num) and total.value % divisor == 0)
