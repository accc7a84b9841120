"""Blocks with loops and branches: decides how each loop is printed."""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest.index import add, minimum
from kernelgen.nest.nodes import Block, For, If, LoopKind, Num, Statement, Var
from kernelgen.targets.cpu.loops.matrices import matrix_loop
from kernelgen.targets.cpu.loops.matrix_plan import MatrixPlan, matrix_plan
from kernelgen.targets.cpu.loops.parallel import parallel_loop
from kernelgen.targets.cpu.loops.thread_plan import has_threads
from kernelgen.targets.cpu.loops.tile_plan import TilePlan, tile_plan
from kernelgen.targets.cpu.loops.tiles import tiled_loops
from kernelgen.targets.cpu.loops.vector import vector_loop
from kernelgen.targets.cpu.loops.vector_plan import VectorPlan, vector_plan
from kernelgen.targets.cpu.statements.locals import release
from kernelgen.targets.cpu.statements.statements import run
from kernelgen.targets.cpu.text.counting import conditional, counted_loop, integer, static_trips
from kernelgen.targets.cpu.text.indices import condition_value, index_value, is_nonnegative
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value

MAX_UNROLL = 16


def block(frame: Frame, statements: Block) -> None:
    """Prints a block; its bindings and locals end with it."""
    for statement in statements.statements:
        frame = _statement(frame, statement)
    release(frame, statements)


def _statement(frame: Frame, statement: Statement) -> Frame:
    match statement:
        case For():
            _loop(frame, statement)
        case If(conditions, body):
            conditional(frame.function, condition_value(frame, conditions), lambda: block(frame, body))
        case Block():
            block(frame, statement)
        case _:
            (frame,) = run((frame,), statement)
    return frame


def _loop(frame: Frame, loop: For) -> None:
    if loop.kind is LoopKind.VECTOR:
        _vector(frame, loop)
    elif loop.kind is LoopKind.PARALLEL and not frame.in_parallel and has_threads(loop):
        parallel_loop(frame, loop, _serial)
    elif loop.kind is LoopKind.INTERLEAVE and isinstance(plan := tile_plan(loop, frame.host), TilePlan):
        tiled_loops(frame, loop, plan, block)
    elif loop.kind is LoopKind.ROWS and isinstance(matrices := matrix_plan(loop, frame.host), MatrixPlan):
        matrix_loop(frame, loop, matrices, block)
    elif loop.kind is LoopKind.UNROLL:
        _unrolled(frame, loop)
    else:
        _serial(frame, loop)


def _serial(frame: Frame, loop: For) -> None:
    lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)

    def body(counter: Value) -> None:
        block(frame.with_variable(loop.var, counter, is_nonnegative(frame, loop.lower)), loop.body)

    counted_loop(frame.function, lower, upper, loop.step, body, loop.var)


def _unrolled(frame: Frame, loop: For) -> None:
    lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)
    trips = static_trips(lower, upper, loop.step)
    if trips is None or trips > MAX_UNROLL:
        _serial(frame, loop)
        return
    for trip in range(trips):
        counter = integer(frame.function, int(lower.text) + trip * loop.step)
        block(frame.with_variable(loop.var, counter, is_nonnegative(frame, loop.lower)), loop.body)


def _vector(frame: Frame, loop: For) -> None:
    plan = vector_plan(loop, frame.host)
    if not isinstance(plan, VectorPlan):
        _serial(frame, loop)
    elif plan.sum_block is not None:
        _in_blocks(frame, loop, plan, plan.sum_block)
    else:
        vector_loop(frame, loop, plan)


def _in_blocks(frame: Frame, loop: For, plan: VectorPlan, length: int) -> None:
    """The loop in pieces of ``length`` iterations."""
    lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)
    start = f"{loop.var}.block"
    end = minimum(add(Var(start), Num(length)), loop.upper)
    piece = replace(loop, lower=Var(start), upper=end)

    def body(counter: Value) -> None:
        vector_loop(frame.with_variable(start, counter, is_nonnegative(frame, loop.lower)), piece, plan)

    counted_loop(frame.function, lower, upper, length, body, start)
