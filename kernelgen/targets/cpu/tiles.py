"""Interleaved loops: square tiles of iterations, whose transposed accesses are vectors along the outer loop.

    interleave i: vector j: y[i, j] = x[j, i] + b[i]

    b[i .. i+W]                            once, along i
    x[j+k, i .. i+W] for all k < W         W vectors along i, transposed into W vectors along j
    y[i+r, j .. j+W] for all r < W         the body as in every vector loop, row by row

Stores along i are collected, transposed and written last. What no whole tile covers is left to the vector loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kernelgen.nest.index import stride, subtract
from kernelgen.nest.nodes import Block, For, Index, Let, Load, Num, Store, Var
from kernelgen.targets.cpu import access
from kernelgen.targets.cpu.counting import conditional, counted_loop, integer
from kernelgen.targets.cpu.expressions import expression
from kernelgen.targets.cpu.formats import from_memory, memory_kind, to_memory
from kernelgen.targets.cpu.frame import Frame, Known, Lanes
from kernelgen.targets.cpu.indices import index_value, is_nonnegative
from kernelgen.targets.cpu.statements import Frames, run
from kernelgen.targets.cpu.streaming import stream_of
from kernelgen.targets.cpu.tile_plan import TilePlan
from kernelgen.targets.cpu.transpose import transposed
from kernelgen.targets.cpu.values import Value, vector_type

CACHE_LINE = 64


def tiled_loops(frame: Frame, loop: For, plan: TilePlan, serial: Callable[[Frame, For], None]) -> None:
    """Prints both loops as tiles; ``serial`` prints what is left of the outer loop, one iteration at a time."""
    lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)
    left, right = index_value(frame, plan.vector.lower), index_value(frame, plan.vector.upper)
    bottom, end = _last_tile(lower, upper, plan.size), _last_tile(left, right, plan.size)
    tiles = _Tiles(frame, loop, plan)
    counted_loop(frame.function, lower, bottom, plan.size, lambda i: tiles.row_of_tiles(i, left, end), "tiles")
    if not all(_is_multiple(subtract(each.upper, each.lower), plan.size) for each in (loop, plan.vector)):
        is_left = bottom.compare("slt", upper) | end.compare("slt", right)
        conditional(frame.function, is_left, lambda: _edges(frame, loop, plan, (bottom, left, end), serial), "edges")


def _edges(
    frame: Frame, loop: For, plan: TilePlan, tiled: tuple[Value, Value, Value], serial: Callable[[Frame, For], None]
) -> None:
    """The columns right of the tiles in rows that have tiles, all columns below them."""
    bottom, left, end = tiled
    start = f"{plan.vector.var}.start"

    def row(number: Value) -> None:
        inner = frame.with_variable(start, number.compare("slt", bottom).select(end, left), is_nonnegative(frame, plan.vector.lower))
        inner = inner.with_variable(f"{loop.var}.row", number, is_nonnegative(frame, loop.lower))
        once = replace(loop, lower=Var(f"{loop.var}.row"), upper=Var(f"{loop.var}.row") + 1)
        serial(inner, once)
