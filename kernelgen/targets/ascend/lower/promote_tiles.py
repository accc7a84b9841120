"""Loops over GM become copies to tiles, instructions on tiles, and copies back.

The walk over a nest: what is dealt to the cores, what is a turn (:mod:`turns`), what stays a loop or a branch of the scalar
unit. Statements outside of turns are turns of one lane, and so are the iterations of loops that :mod:`fits` refuses.
Locals of the nest stay in the unified buffer where every vector access begins at a block; the others (``outside``) go to
GM, one copy for each core.
"""

from __future__ import annotations

from kernelgen.ascendc.expressions import (
    BLOCK_INDEX,
    Binary,
    Expression,
    Field,
    Number,
    ceil_div,
)
from kernelgen.ascendc.instructions import GlobalTensor
from kernelgen.errors import UnsupportedError
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.nodes import Alloc, Block, Buffer, Compare, For, If, LoopKind, Nest
from kernelgen.nest.ranges import Range
from kernelgen.targets.ascend.lower.cube.core_plan import VECTOR, Plan, meet, plan_of, vector_cores
from kernelgen.targets.ascend.lower.cube.vector_epilogue import TilesAsTheyCome
from kernelgen.targets.ascend.lower.lanes.constant_branches import without_certain
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.lanes.turn import QUANTUM, stored_as, tile_lanes
from kernelgen.targets.ascend.lower.loops.evaluate import statement
from kernelgen.targets.ascend.lower.loops.strip_mine import name_iteration, row_turns, serial, vector_turns
from kernelgen.targets.ascend.lower.loops.vectorisable import compares, has_lanes, row_tiles
from kernelgen.targets.ascend.lower.program.indices import to_expression
from kernelgen.targets.ascend.lower.program.scope import (
    ALIGNED,
    LOCAL_TYPES,
    Context,
    Local,
    Scope,
    linear_size,
    local_size,
    parameter_of,
)
from kernelgen.targets.ascend.lower.program.writer import Program
from kernelgen.transforms.common.split_layout_blocks import split

TILING = "tiling"


def promote(nest: Nest, machine: Machine, turn: int, outside: frozenset[str] = frozenset()) -> Program:
    """The whole nest, with turns of at most ``turn`` lanes.

    Raises Unaligned for a local that must go ``outside``, UnsupportedError for what the machine has no instructions for.
    """
    plan = plan_of(nest, machine)
    context, scope = Context(machine, turn, outside, cores=vector_cores(plan)), Scope()
    for symbol in nest.symbols:
        scope.variables[symbol] = Field(TILING, symbol)
        scope.ranges[symbol] = Range(1)
    for buffer in nest.buffers:
        _declare(context, buffer, scope)
    meetings = _parts(context, plan, scope)
    body = (*(context.counted.body if context.counted else ()), *context.writer.blocks[0])
    body = without_certain(body, machine)
    return Program(tuple(context.writer.tiles.values()), tuple(context.tensors.values()), body, meetings)


def _declare(context: Context, buffer: Buffer, scope: Scope) -> None:
    dtype = stored_as(buffer.dtype)
    if dtype not in context.machine.operations["DataCopy"]:
        raise UnsupportedError(
            "unsupported-dtype", f"{buffer.name} is {dtype.name}: {context.machine.name} does not copy it"
        )
    size = to_expression(linear_size(buffer), scope.variables, {})
    context.tensors[buffer.name] = GlobalTensor(f"{buffer.name}_gm", dtype, parameter_of(buffer), size)


# ---------------------------------------------------------------- cores


def _parts(context: Context, plan: Plan, scope: Scope) -> bool:
    """The parts for vector cores in order, and their side of the meetings; whether there are any."""
    for part in plan.parts:
        for meeting in part.meetings:
            meet(context.writer, meeting, VECTOR)
        if part.kind == VECTOR:
            context.handshake = part.handshake
            _part(context, split(part.block), scope)
    return any(part.meetings for part in plan.parts)


def _part(context: Context, part: Block, scope: Scope) -> None:
    only = part.statements[0]
    if len(part.statements) == 1 and isinstance(only, For) and only.kind is LoopKind.BLOCK:
        _dealt(context, only, scope.copy())
        return
    with context.writer.when(BLOCK_INDEX.equals(0)):
        _block(context, part, scope.copy())


def _dealt(context: Context, loop: For, scope: Scope) -> None:
    """Block ``b`` of ``B`` takes iterations b, b + B, b + 2B, ...; one at most where there are as many cores."""
    lower = to_expression(loop.lower, scope.variables, scope.ranges)
    upper = to_expression(loop.upper, scope.variables, scope.ranges)
    trips = ceil_div(upper - lower, loop.step)
    if isinstance(trips, Number) and int(trips.value) <= context.machine.cores:
        with context.writer.when(trips > BLOCK_INDEX):
            name_iteration(context, loop, lower + BLOCK_INDEX * loop.step, scope)
            _block(context, loop.body, scope)
        return
    with context.writer.loop("b", BLOCK_INDEX, trips, context.cores) as turn:
        name_iteration(context, loop, lower + turn * loop.step, scope)
        _block(context, loop.body, scope)


# ---------------------------------------------------------------- statements


def _block(context: Context, block: Block, scope: Scope) -> None:
    """Statements outside of turns."""
    for part in block.statements:
        match part:
            case For():
                _loop(context, part, scope.copy())
            case If():
                with context.writer.when(_condition(part, scope)):
                    _block(context, part.body, scope.copy())
            case Block():
                _block(context, part, scope)
            case Alloc():
                _allocate(context, part.buffer)
            case _:
                statement(
                    context, part, Lanes(context.writer, context.machine, context.counting, whole=compares(part)), scope
                )


def _loop(context: Context, loop: For, scope: Scope) -> None:
    """A loop as turns of lanes or rows where it has any."""
    tiles = row_tiles(context, loop, scope)
    if tiles is not None:
        row_turns(context, loop, tiles, scope)
    elif loop.kind is LoopKind.VECTOR and has_lanes(context, loop, scope):
        vector_turns(context, loop, scope)
    else:
        with serial(context, loop, scope):
            if isinstance(loop, TilesAsTheyCome):
                context.writer.emit("CrossCoreWaitFlag", id=context.handshake or 0)
            _block(context, loop.body, scope)


def _condition(guard: If, scope: Scope) -> Expression:
    found: Expression | None = None
    for each in guard.conditions:
        one = _compared(each, scope)
        found = one if found is None else Binary("&&", found, one)
    return found or Number(1)


def _compared(compare: Compare, scope: Scope) -> Expression:
    left, right = (to_expression(side, scope.variables, scope.ranges) for side in (compare.left, compare.right))
    return Binary(compare.op, left, right)


def _allocate(context: Context, buffer: Buffer) -> None:
    """A local is a tile, or an array in GM with a copy for each core."""
    if buffer.name in context.outside or buffer.dtype not in LOCAL_TYPES:
        size = context.cores * local_size(buffer)
        dtype = stored_as(buffer.dtype)
        context.tensors[buffer.name] = GlobalTensor(f"{buffer.name}_gm", dtype, parameter_of(buffer), size)
    else:
        tile = context.writer.tile("local", buffer.dtype, _with_room(local_size(buffer)), primed=True)
        context.locals[buffer.name] = Local(tile)


def _with_room(size: int) -> int:
    """The lanes of a local: whole repeats may begin at each of its blocks, in the last one too."""
    return tile_lanes(size if size <= ALIGNED else size - ALIGNED + QUANTUM)
