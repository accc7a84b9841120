"""Straight-line statements: bindings, stores, accumulations, locals. Loops and scalar branches are elsewhere.

Statements run on several frames at once, the copies of an unrolled vector loop: statement by statement, so that the
stores of one stream lie together and the copies fill each other's latencies.
"""

from __future__ import annotations

from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Call,
    Expr,
    If,
    Index,
    Let,
    Literal,
    Prefetch,
    Ref,
    Statement,
    Store,
)
from kernelgen.targets.cpu.math import arithmetic, byte_products
from kernelgen.targets.cpu.statements import access
from kernelgen.targets.cpu.statements.expressions import expression
from kernelgen.targets.cpu.statements.locals import local
from kernelgen.targets.cpu.text.counting import conditional
from kernelgen.targets.cpu.text.formats import register_kind, rounded
from kernelgen.targets.cpu.text.indices import condition_value
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value, constant, vector_type
from kernelgen.tensor.dtypes import FLOAT32, FLOAT64

Frames = tuple[Frame, ...]


def run_block(frames: Frames, block: Block) -> Frames:
    """Prints a block without loops."""
    for statement in block.statements:
        frames = run(frames, statement)
    return frames


def run_alone(frame: Frame, block: Block) -> None:
    """Prints a block without loops on one frame."""
    run_block((frame,), block)


def run(frames: Frames, statement: Statement) -> Frames:
    """Prints a statement on every frame; returns the frames for the statements that follow.

    Raises AssertionError for a statement that is a loop or a condition.
    """
    match statement:
        case Let(name, value):
            return tuple(frame.with_binding(name, expression(frame, value), value) for frame in frames)
        case Store():
            values = [expression(frame, statement.value) for frame in frames]
            for frame, value in zip(frames, values, strict=True):
                streams = frame.is_aligned and statement.buffer.name == frame.streamed
                access.store(frame, statement.buffer, statement.index, value, streams)
        case Accumulate():
            for frame in frames:
                _accumulate(frame, statement)
        case Alloc(buffer):
            return tuple(frame.with_memory(local(frame, buffer)) for frame in frames)
        case Prefetch(buffer, place, level):
            for frame in frames:
                access.prefetch(frame, buffer, place, level)
        case If():
            _guarded(frames, statement)
        case Block():
            run_block(frames, statement)
        case _:
            raise AssertionError(f"{type(statement).__name__} is not a straight-line statement")
    return frames


def _guarded(frames: Frames, statement: If) -> None:
    """A mask for the lanes of a vector; a branch for a single iteration, whose loads and stores know no mask."""
    conditions = [condition_value(frame, statement.conditions) for frame in frames]
    if any(frame.lanes is None for frame in frames):
        (frame,), (condition,) = frames, conditions
        conditional(frame.function, condition, lambda: run_alone(frame, statement.body))
    else:
        run_block(tuple(map(Frame.masked, frames, conditions)), statement.body)


def update(frame: Frame, buffer: Buffer, index: tuple[Index, ...], function: str, value: Value) -> None:
    """``buffer[index] = function(buffer[index], value)`` in memory, printed into ``frame``."""
    current = access.load(frame, buffer, index)
    result = rounded(arithmetic.combine(function, buffer.dtype, current, value), buffer.dtype, frame.host)
    access.store(frame, buffer, index, result)


def start_accumulator(frame: Frame, statement: Accumulate, lanes: int) -> str:
    """A stack slot for the accumulation ``statement`` in ``frame``, with the neutral element in each of ``lanes``
    lanes.
    """
    dtype = statement.buffer.dtype
    neutral = constant(frame.function, neutral_element(statement.function, dtype).value, register_kind(dtype)).splat(
        lanes
    )
    slot = frame.function.slot(neutral.type, statement.buffer.name)
    frame.function.perform(f"store {neutral.typed}, ptr {slot}, align {access.alignment(neutral.kind)}")
    return slot


def finish_accumulator(frame: Frame, statement: Accumulate, slots: list[str], lanes: int) -> None:
    """Combines the ``slots`` of all copies of ``statement``, then the ``lanes`` pairwise, and updates the target once,
    in ``frame``.
    """
    dtype, kind = statement.buffer.dtype, register_kind(statement.buffer.dtype)
    parts = [Value(frame.function, _load_slot(frame, slot, kind, lanes), kind, lanes) for slot in slots]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [
            *(arithmetic.combine(statement.function, dtype, a, b) for a, b in pairs),
            *parts[len(parts) // 2 * 2 :],
        ]
    total = parts[0]
    while total.lanes > 1:
        total = arithmetic.combine(statement.function, dtype, *total.halves())
    update(frame, statement.buffer, statement.index, statement.function, total)


def _accumulate(frame: Frame, statement: Accumulate) -> None:
    slot = frame.accumulators.get((statement.buffer.name, statement.index))
    if slot is None:
        old = access.load(frame, statement.buffer, statement.index)
        result = rounded(_joined(frame, statement, old), statement.buffer.dtype, frame.host)
        access.store(frame, statement.buffer, statement.index, result)
        return
    assert frame.lanes is not None
    dtype, lanes = statement.buffer.dtype, frame.lanes.count
    kind = register_kind(dtype)
    old = Value(frame.function, _load_slot(frame, slot, kind, lanes), kind, lanes)
    new = _joined(frame, statement, old)
    if frame.mask is not None:
        new = frame.mask.select(new, old)
    frame.function.perform(f"store {new.typed}, ptr {slot}, align {access.alignment(kind)}")


def _joined(frame: Frame, statement: Accumulate, old: Value) -> Value:
    """The old value and the new one; a product that is added takes one instruction and is not rounded by itself."""
    value, dtype = statement.value, statement.buffer.dtype
    if statement.function == "add" and dtype in (FLOAT32, FLOAT64) and frame.host.has_fma:
        return _added(frame, value, old)
    if statement.function == "add" and isinstance(value, Call) and value.function == "byte_dot":
        return byte_products.added(old, *(expression(frame, word) for word in value.args))
    return arithmetic.combine(statement.function, dtype, expression(frame, value), old)


def _added(frame: Frame, value: Expr, total: Value) -> Value:
    """The total and a value, term by term."""
    value = _product_of(frame, value)
    if not isinstance(value, Call) or value.function not in ("add", "mul") or value in frame.known.values:
        return arithmetic.combine("add", value.dtype, expression(frame, value), total)
    left, right = value.args
    if value.function == "add":
        return _added(frame, right, _added(frame, left, total))
    return _summed(frame, left).fma(_summed(frame, right), total)


def _product_of(frame: Frame, value: Expr) -> Expr:
    """The product that a binding is, where its factors are bindings too: elements that it loaded may have changed since."""
    call = frame.calls.get(value.name) if isinstance(value, Ref) else None
    if call is None or call.function != "mul" or not all(isinstance(arg, Ref | Literal) for arg in call.args):
        return value
    return call


def _summed(frame: Frame, value: Expr) -> Value:
    """A value that is a factor of a term: where it is a sum, terms join its first one."""
    if not isinstance(value, Call) or value.function != "add" or value in frame.known.values:
        return expression(frame, value)
    return _added(frame, value.args[1], _summed(frame, value.args[0]))


def _load_slot(frame: Frame, slot: str, kind: str, lanes: int) -> str:
    return frame.function.assign(f"load {vector_type(kind, lanes)}, ptr {slot}, align {access.alignment(kind)}")
