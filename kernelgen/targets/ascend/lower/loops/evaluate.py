"""Expressions and statements of a nest in the lanes of a turn.

let v = x[c0, c1] - m[c0]; s[c0] += v     ->     Sub(t, in, spread); fold of the rows of t; Add to s
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.ascendc.types import REPEAT
from kernelgen.errors import UnsupportedError
from kernelgen.nest import nodes as n
from kernelgen.nest.index import is_by_data
from kernelgen.nest.neutral import neutral_element
from kernelgen.targets.ascend.lower.functions.doubles import cast
from kernelgen.targets.ascend.lower.functions.operations import call
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.loops.lane_reductions import PAIRS, fold, fold_columns, fold_rows, gathers
from kernelgen.targets.ascend.lower.loops.transfers import axes_of, load, place, store
from kernelgen.targets.ascend.lower.program.indices import element_step, to_expression
from kernelgen.targets.ascend.lower.program.names import Constant, Held, Value
from kernelgen.targets.ascend.lower.program.scope import Context, Scope, accumulated_in
from kernelgen.tensor.dtypes import BOOL, INT32, INT64, DType


def statement(context: Context, part: n.Statement, lanes: Lanes, scope: Scope) -> None:
    """Writes ``part``, a binding, a store or a reduction, for the ``lanes`` of a turn; ``scope`` is what is known
    where it stands.

    Raises UnsupportedError for any other. The program is that of ``context``.
    """
    match part:
        case n.Let(name, given):
            scope.bound[name] = value(context, given, lanes, scope)
        case n.Store(buffer, index, given):
            store(context, buffer, index, value(context, given, lanes, scope), lanes, scope)
        case n.Accumulate():
            found = value(context, part.value, lanes, scope)
            names = _targets(context, part, lanes)
            if names != lanes.names:
                found = reduced(context, part, found, lanes, names)
            join(context, part, found, lanes.along(names), scope)
        case _:
            raise UnsupportedError("unsupported-op", f"a {type(part).__name__} has no tile program")


def _targets(context: Context, part: n.Accumulate, lanes: Lanes) -> tuple[str, ...]:
    """The axes along which a reduction has results of their own."""
    local = context.locals.get(part.buffer.name)
    own = axes_of(part.buffer, part.index, lanes)
    return tuple(name for name in lanes.names if name in own or (local is not None and name == local.row))


def join(context: Context, part: n.Accumulate, found: Value, lanes: Lanes, scope: Scope) -> None:
    """``element = function(element, found)`` of the accumulation ``part`` for each of ``lanes``, in the program of
    ``context``; ``scope`` is what is known there.
    """
    old = place(context, part.buffer, part.index, lanes, scope)
    if part.buffer.name in context.locals and part.function in PAIRS:
        operand = lanes.ref(found)
        context.writer.emit(PAIRS[part.function], dst=old.ref, first=old.ref, second=operand, count=lanes.count)
        return
    both = call(lanes, part.function, (old, found), part.buffer.dtype)
    store(context, part.buffer, part.index, both, lanes, scope)


# ---------------------------------------------------------------- reductions in a turn


def reduced(context: Context, part: n.Accumulate, found: Value, lanes: Lanes, names: tuple[str, ...]) -> Held:
    """The combination of a turn's lanes along the axes that are not among ``names``."""
    held = lanes.held(found)
    if len(lanes.axes) == 2 and names == lanes.names[1:]:
        return fold_columns(lanes, part.function, gathered_in(accumulator(part, lanes), part, held, lanes))
    if len(lanes.axes) == 2:
        step = context.counting.offsets(REPEAT) if gathers(lanes.machine, part.function, held.dtype) else None
        held, lanes = fold_rows(lanes, part.function, held, step), lanes.along(lanes.names[:1])
    if names:
        return held
    total = gathered_in(accumulator(part, lanes), part, held, lanes)
    return fold(lanes.along(()), part.function, total, lanes.capacity)


def accumulator(part: n.Accumulate, lanes: Lanes) -> Held:
    """A tile with the neutral element in every lane that there may be."""
    dtype = part.buffer.dtype
    wide = accumulated_in(part) or dtype
    neutral = neutral_element(part.function, min(dtype, wide, key=lambda one: one.bits))
    return lanes.full(Constant(float(neutral.value) if wide.is_float else int(neutral.value), wide))


def gathered_in(total: Held, part: n.Accumulate, found: Value, lanes: Lanes) -> Held:
    """The accumulator, when the turn's lanes have joined it."""
    operand = cast(lanes, lanes.held(found), total.dtype)
    lanes.writer.emit(PAIRS[part.function], dst=total.ref, first=total.ref, second=operand.ref, count=lanes.count)
    return total


# ---------------------------------------------------------------- expressions


def value(context: Context, expr: n.Expr, lanes: Lanes, scope: Scope) -> Value:
    """The value of the scalar expression ``expr`` in the ``lanes`` of a turn, in the program of ``context``; ``scope``
    is what is known where it stands.
    """
    match expr:
        case n.Literal(number, dtype):
            return Constant(number, dtype)
        case n.Ref(name):
            return scope.bound[name]
        case n.Load(buffer, index):
            return load(context, buffer, index, lanes, scope)
        case n.IndexValue(index, dtype):
            return _index_value(context, index, dtype, lanes, scope)
        case n.Call("cast", (operand,), dtype):
            return _cast(value(context, operand, lanes, scope), dtype, lanes)
        case n.Call(function, args, dtype):
            return call(lanes, function, [value(context, arg, lanes, scope) for arg in args], dtype)


def _cast(found: Value, dtype: DType, lanes: Lanes) -> Value:
    if isinstance(found, Constant):
        number = found.value
        known = bool(number) if dtype == BOOL else int(number) if dtype.is_integer else float(number)
        return Constant(known, dtype)
    if found.dtype == dtype:
        return found
    made = cast(lanes, found, dtype)
    return replace(made, narrow=found) if (found.dtype, dtype) == (INT32, INT64) else made


def _index_value(context: Context, index: n.Index, dtype: DType, lanes: Lanes, scope: Scope) -> Value:
    """An index as a number: lanes count on from the first along each axis."""
    if is_by_data(index):
        raise UnsupportedError("unsupported-op", "data decides an index that is a number")
    found = lanes.new(INT32, "index")
    first = to_expression(index, scope.variables, scope.ranges)
    context.writer.emit("Duplicate", dst=found.ref, scalar=first, count=lanes.lanes)
    for name in lanes.names:
        step = element_step((index,), (1,), name)
        if not isinstance(step, n.Num):
            raise UnsupportedError("unsupported-op", "an index that is no multiple of the lane's number")
        if step != n.Num(0):
            only = lanes.along((name,))
            counted = only.new(INT32, "counted")
            ramp = context.counting.ramp
            context.writer.emit("Muls", dst=counted.ref, src=ramp, scalar=step.value, count=only.lanes)
            found = lanes.binary("Add", found, counted, INT32)
    return found if dtype == INT64 else _cast(found, dtype, lanes)
