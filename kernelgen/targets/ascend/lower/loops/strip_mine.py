"""Loops become turns: so many iterations at once as tiles have lanes, or rows.

    vector for c1 in c0..c0 + 1024 {        for k in 0..1:
      let v0 = x[c1]                          DataCopyPad(x_0, x_gm[c0 + k * 1024], 1 row of n elements)
      let v1 = exp(v0)                ->      Exp(t_0, x_0, n)
      y[c1] = v1                              DataCopyPad(y_gm[c0 + k * 1024], t_0, 1 row of n elements)
    }

    rows for c0 in 0..640 {                 for k in 0..ceil(640 / 64):
      alloc s: f32[]                          rows = min(640 - k * 64, 64)
      vector for c1 in 0..50 {                DataCopyPad(x_0, x_gm[k * 64 * 50], rows of 50 elements)
        s[] += x[c0, c1]              ->      WholeReduceSum(ones_0, x_0, 50, rows)
      }                                       ...
    }

What a vector loop alone reduces has an accumulator with a lane for each of the turn's, which is folded behind the loop.
In a turn of rows every statement does all rows, one statement after the other: no dependence crosses such a loop, but
for reductions, which are joined turn by turn.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from kernelgen.ascendc.expressions import Expression, Number, ceil_div, smaller
from kernelgen.nest.index import subtract
from kernelgen.nest.nodes import Accumulate, Alloc, Block, For, Num
from kernelgen.nest.ranges import Range, range_of
from kernelgen.nest.walk import statements, stored_buffers
from kernelgen.targets.ascend.lower.functions.doubles import cast
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.lanes.turn import Axis, tile_lanes
from kernelgen.targets.ascend.lower.loops.evaluate import accumulator, gathered_in, join, statement, value
from kernelgen.targets.ascend.lower.loops.lane_reductions import fold
from kernelgen.targets.ascend.lower.loops.vectorisable import RowTiles, compares, has_columns, is_strided
from kernelgen.targets.ascend.lower.program.indices import divides, element_step, most, to_expression
from kernelgen.targets.ascend.lower.program.names import Held
from kernelgen.targets.ascend.lower.program.scope import ALIGNED, MOST_STRIDED, Context, Local, Scope, local_size
from kernelgen.tensor.dtypes import INT32


@dataclass(frozen=True)
class Turn:
    """``count`` iterations of a loop from ``start`` on; ``depth`` is the writer's block of the loop of turns, or 0."""

    start: Expression
    count: Expression
    depth: int


@contextmanager
def turns(context: Context, loop: For, scope: Scope, capacity: int) -> Generator[Turn]:
    """A loop's turns of at most ``capacity`` iterations; one without a loop where there are no more."""
    lower = to_expression(loop.lower, scope.variables, scope.ranges)
    known = subtract(loop.upper, loop.lower)
    upper = to_expression(loop.upper, scope.variables, scope.ranges)
    extent = Number(known.value) if isinstance(known, Num) else upper - lower
    longest = most(loop.upper, loop.lower)
    writer = context.writer
    if longest is not None and longest <= capacity:
        count = writer.let("n", INT32, extent)
        with nullcontext() if isinstance(count, Number) else writer.when(count >= 1):
            yield Turn(lower, count, 0)
        return
    total = writer.let("total", INT32, extent)
    even = isinstance(total, Number) and int(total.value) % capacity == 0
    with writer.loop("k", 0, ceil_div(total, capacity)) as number:
        depth = len(writer.blocks) - 1
        start = writer.let("at", INT32, lower + number * capacity)
        rest = total - number * capacity
        count = Number(capacity) if even else writer.let("n", INT32, smaller(rest, capacity))
        yield Turn(start, count, depth)


def enter(loop: For, turn: Turn, capacity: int, scope: Scope) -> None:
    """The loop's variable stands for the first iteration of the turn."""
    single = not turn.depth
    scope.variables[loop.var] = turn.start
    scope.ranges[loop.var] = Range(range_of(loop.lower, scope.ranges).low)
    if divides(ALIGNED, loop.lower, scope.multiples) and (single or capacity % ALIGNED == 0):
        scope.multiples[loop.var] = ALIGNED


# ---------------------------------------------------------------- a vector loop alone


def vector_turns(context: Context, loop: For, scope: Scope) -> None:
    """Turns of at most ``context.turn`` lanes."""
    turn = min(context.turn, MOST_STRIDED) if is_strided(loop) else context.turn
    longest = most(loop.upper, loop.lower)
    capacity = turn if longest is None else min(turn, tile_lanes(longest))
    whole = any(compares(part) for part in loop.body.statements)
    full = Lanes(context.writer, context.machine, context.counting, (Axis(loop.var, Number(capacity), capacity),))
    totals = {part: accumulator(part, full) for part in _reductions(loop)}
    with turns(context, loop, scope, capacity) as turn_:
        axis = Axis(loop.var, turn_.count, capacity)
        lanes = Lanes(context.writer, context.machine, context.counting, (axis,), whole=whole, depth=turn_.depth)
        enter(loop, turn_, capacity, scope)
        for part in loop.body.statements:
            if isinstance(part, Accumulate) and part in totals:
                gathered_in(totals[part], part, value(context, part.value, lanes, scope), lanes)
            else:
                statement(context, part, lanes, scope)
    _finish(context, totals, capacity, scope)


def _reductions(loop: For) -> tuple[Accumulate, ...]:
    parts = (part for part in loop.body.statements if isinstance(part, Accumulate))
    return tuple(part for part in parts if element_step(part.index, part.buffer.shape, loop.var) == Num(0))


def _finish(context: Context, totals: Mapping[Accumulate, Held], capacity: int, scope: Scope) -> None:
    """The accumulators' lanes are folded into one, which joins the element."""
    for part, total in totals.items():
        single = Lanes(context.writer, context.machine, context.counting, whole=compares(part))
        one = fold(single, part.function, total, tile_lanes(capacity))
        join(context, part, cast(single, single.held(one), part.buffer.dtype), single, scope)


# ---------------------------------------------------------------- rows


def row_turns(context: Context, loop: For, tiles: RowTiles, scope: Scope) -> None:
    """Turns of so many rows as the tiles have."""
    whole = any(compares(part) for part in statements(loop.body))
    inner = frozenset(part.var for part in statements(loop.body) if isinstance(part, For))
    with turns(context, loop, scope, tiles.rows) as turn:
        axis = Axis(loop.var, turn.count, tiles.rows)
        lanes = Lanes(context.writer, context.machine, context.counting, (axis,), whole=whole, depth=turn.depth)
        enter(loop, turn, tiles.rows, scope)
        scope.moving, scope.written = frozenset((loop.var, *inner)), stored_buffers(loop.body)
        _row_block(context, loop.body, tiles, lanes, scope)


def _row_block(context: Context, block: Block, tiles: RowTiles, lanes: Lanes, scope: Scope) -> None:
    """Statements of all rows, one after the other."""
    for part in block.statements:
        match part:
            case Alloc(buffer):
                size = local_size(buffer)
                elements = lanes.axes[0].capacity * (1 if size == 1 else tiles.pitch(size))
                tile = context.writer.tile("local", buffer.dtype, tile_lanes(elements), primed=True)
                context.locals[buffer.name] = Local(tile, lanes.names[0])
            case For() if has_columns(part):
                _columns(context, part, tiles, lanes, scope.copy())
            case For():
                _steps(context, part, tiles, lanes, scope.copy())
            case _:
                statement(context, part, replace(lanes, spreads={}, parts={}), scope)


def _columns(context: Context, loop: For, tiles: RowTiles, rows: Lanes, scope: Scope) -> None:
    """A vector loop of all rows."""
    width = most(loop.upper, loop.lower) or 0
    axis = Axis(loop.var, Number(width), width)
    lanes = replace(rows, axes=(*rows.axes, axis), pitch=tiles.pitch(width), spreads={}, parts={})
    first = loop.lower.value if isinstance(loop.lower, Num) else 0
    scope.variables[loop.var] = Number(first)
    scope.ranges[loop.var] = Range(first, first + width - 1)
    if first % ALIGNED == 0:
        scope.multiples[loop.var] = ALIGNED
    for part in loop.body.statements:
        statement(context, part, lanes, scope)


def _steps(context: Context, loop: For, tiles: RowTiles, lanes: Lanes, scope: Scope) -> None:
    """A loop of which all rows do one iteration after the other."""
    with serial(context, loop, scope):
        _row_block(context, loop.body, tiles, lanes, scope)


# ---------------------------------------------------------------- loops as they are


@contextmanager
def serial(context: Context, loop: For, scope: Scope) -> Generator[None]:
    """A ``loop`` of the scalar unit around what is written inside, in the program of ``context``; ``scope`` is what is
    known where it stands.
    """
    lower = to_expression(loop.lower, scope.variables, scope.ranges)
    upper = to_expression(loop.upper, scope.variables, scope.ranges)
    with context.writer.loop("i", lower, upper, loop.step) as variable:
        name_iteration(context, loop, variable, scope)
        yield


def name_iteration(context: Context, loop: For, at: Expression, scope: Scope) -> None:
    """The loop's variable has a name, a range and a divisor inside."""
    scope.variables[loop.var] = context.writer.let("at", INT32, at)
    low, high = range_of(loop.lower, scope.ranges), range_of(loop.upper, scope.ranges)
    scope.ranges[loop.var] = Range(low.low, None if high.high is None else high.high - 1)
    for factor in (1024, 512, 256, 128, 64, 32, ALIGNED):
        if loop.step % factor == 0 and divides(factor, loop.lower, scope.multiples):
            scope.multiples[loop.var] = factor
            break
