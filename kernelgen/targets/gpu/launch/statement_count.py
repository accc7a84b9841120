"""How much a thread of a launch does, roughly: a count of statements, so that a sample of blocks is no longer than others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import Block, For, Grid, If, Statement


def work_of(grid: Grid, sizes: Mapping[str, int]) -> int:
    """The statements that the first thread of the first block runs, conditions aside; places that data decide count as 0."""
    return _work(grid.body, defaultdict(int, sizes))


def _work(part: Statement, known: Mapping[str, int]) -> int:
    match part:
        case Block(inner):
            return sum(_work(each, known) for each in inner)
        case If(_, body):
            return _work(body, known)
        case For(_, lower, upper, body, _, step):
            return max(-(-(extent(upper, known) - extent(lower, known)) // step), 0) * _work(body, known)
        case _:
            return 1
