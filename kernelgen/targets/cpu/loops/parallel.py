"""Parallel loops: the body becomes a function that threads run on chunks of the iterations, first come first served.

A chunk is a share of what is left, one for each thread: whoever computes with a panel has asked for the next one, which
is to be its own, and threads that come late or are slow leave more to the others. The last chunks are single iterations.

``run_region`` and ``region_threads`` are bound when the kernel is loaded, see :mod:`team`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernelgen.native.team import COUNT, RUN
from kernelgen.nest.index import floor_divide
from kernelgen.nest.nodes import For, Num, Var
from kernelgen.targets.cpu.loops.thread_plan import MIN_WORK_NANOSECONDS
from kernelgen.targets.cpu.loops.work_estimate import TICKS_PER_NANOSECOND, work
from kernelgen.targets.cpu.statements.locals import heap_locals
from kernelgen.targets.cpu.text.builder import Function
from kernelgen.targets.cpu.text.counting import conditional
from kernelgen.targets.cpu.text.indices import index_value
from kernelgen.targets.cpu.text.outline_function import captured, outlined
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value


def parallel_loop(frame: Frame, loop: For, serial: Callable[[Frame, For], None]) -> None:
    """Prints ``loop`` into ``frame`` as a region for threads; ``serial`` prints a piece of it."""
    lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)
    body = outlined(frame, f"{frame.function.name}.piece", ("lower", "upper"), lambda f, b: _piece(f, loop, b, serial))
    fields = captured(frame)
    region = _region(frame, loop, body, [type_ for type_, _ in fields])
    function = frame.function

    def threads() -> None:
        context = _context(frame, fields, lower, upper)
        start = function.module.declare(RUN, "i1", "ptr, ptr, i64")
        time = index_value(frame, floor_divide(work(loop), Num(TICKS_PER_NANOSECOND)))
        done = function.assign(f"call i1 {start}(ptr {region}, ptr {context}, {time.typed})")
        conditional(function, ~Value(function, done, "i1"), alone, "alone")

    def alone() -> None:
        arguments = [f"{type_} {text}" for type_, text in fields]
        function.perform(f"call void {body}({', '.join([*arguments, lower.typed, upper.typed])})")

    is_enough = _is_enough(frame, loop)
    if is_enough is None:
        threads()
        return
    conditional(function, is_enough, threads, "threads")
    conditional(function, ~is_enough, alone, "alone")


def _piece(frame: Frame, loop: For, bounds: tuple[Value, ...], serial: Callable[[Frame, For], None]) -> None:
    lower, upper = bounds
    names = f"{loop.var}.lower", f"{loop.var}.upper"
    inside = replace(frame, in_parallel=True)
    inside = inside.with_variable(names[0], lower, is_nonnegative=isinstance(loop.lower, Num) and loop.lower.value >= 0)
    inside = inside.with_variable(names[1], upper, is_nonnegative=False)
    with heap_locals(inside, loop.body) as prepared:
        serial(prepared, replace(loop, lower=Var(names[0]), upper=Var(names[1])))


def _context(frame: Frame, fields: list[tuple[str, str]], lower: Value, upper: Value) -> str:
    """A struct of 8-byte fields on the stack: next iteration, lower and upper bound, then everything in scope."""
    function = frame.function
    context = function.slot(f"[{len(fields) + 3} x i64]", "context")
    bounds = [("i64", lower.text), ("i64", lower.text), ("i64", upper.text)]
    for number, (type_, text) in enumerate([*bounds, *fields]):
        function.perform(f"store {type_} {text}, ptr {_field(function, context, number)}")
    return context


def _region(frame: Frame, loop: For, body: str, types: list[str]) -> str:
    """What every thread runs: takes chunks behind the shared counter until none is left."""
    module = frame.function.module
    name = module.unique(f"{frame.function.name}.region")
    function = Function(module, name, "ptr %context", "define internal void")
    upper = Value(function, _load_field(function, 2, "i64"), "i64")
    arguments = [f"{type_} {_load_field(function, number, type_)}" for number, type_ in enumerate(types, start=3)]
    threads = _threads(function)
    again, take, run, done = (function.label(label) for label in ("again", "take", "run", "done"))
    function.jump(again)
    function.begin(again)
    begin = Value(function, function.assign("load atomic i64, ptr %context monotonic, align 8"), "i64")
    function.branch(begin.compare("slt", upper).text, take, done)
    function.begin(take)
    steps = (upper - begin + (loop.step - 1)).binary("sdiv", threads * loop.step)
    next_ = begin + steps.intrinsic("smax", 1) * loop.step
    pair = function.assign(f"cmpxchg ptr %context, i64 {begin.text}, i64 {next_.text} monotonic monotonic")
    function.branch(function.assign(f"extractvalue {{ i64, i1 }} {pair}, 1"), run, again)
    function.begin(run)
    end = next_.intrinsic("smin", upper)
    function.perform(f"call void {body}({', '.join([*arguments, begin.typed, end.typed])})")
    function.jump(again)
    function.begin(done)
    function.finish()
    return f"@{name}"


def _threads(function: Function) -> Value:
    count = function.module.declare(COUNT, "i32", "")
    return Value(function, function.assign(f"call i32 {count}()"), "i32").convert("sext", "i64")


def _field(function: Function, context: str, number: int) -> str:
    return context if number == 0 else function.assign(f"getelementptr i64, ptr {context}, i64 {number}")


def _load_field(function: Function, number: int, type_: str) -> str:
    return function.assign(f"load {type_}, ptr {_field(function, '%context', number)}")


def _is_enough(frame: Frame, loop: For) -> Value | None:
    """Whether the run-time sizes make enough work for threads; None where this is known."""
    time = work(loop)
    if isinstance(time, Num):
        return None
    return index_value(frame, time).compare("sge", MIN_WORK_NANOSECONDS * TICKS_PER_NANOSECOND)
