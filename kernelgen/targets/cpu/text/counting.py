"""Counted loops and two-way branches as blocks of a function."""

from __future__ import annotations

from collections.abc import Callable

from kernelgen.targets.cpu.text.builder import Function
from kernelgen.targets.cpu.text.values import Value, constant


def counted_loop(
    function: Function,
    lower: Value,
    upper: Value,
    step: int,
    body: Callable[[Value], None],
    hint: str = "loop",
    trips: int | None = None,
) -> None:
    """Runs ``body`` for ``lower, lower + step, ...`` below ``upper``; a known number of trips needs no entry test."""
    trips = static_trips(lower, upper, step) if trips is None else trips
    if trips == 0:
        return
    if trips == 1:
        body(lower)
        return
    header, latch, exit_ = (function.label(f"{hint}.{part}") for part in ("body", "next", "end"))
    before = function.block
    if trips is None:
        is_entered = lower.compare("slt", upper)
        function.branch(is_entered.text, header, exit_)
    else:
        function.jump(header)
    function.begin(header)
    following = f"%{latch}.value"
    counter = Value(function, function.assign(f"phi i64 [ {lower.text}, %{before} ], [ {following}, %{latch} ]"), "i64")
    body(counter)
    function.jump(latch)
    function.begin(latch)
    function.perform(f"{following} = add nsw i64 {counter.text}, {step}")
    more = Value(function, following, "i64").compare("slt", upper)
    function.branch(more.text, header, exit_)
    function.begin(exit_)


def conditional(function: Function, condition: Value, body: Callable[[], None], hint: str = "if") -> None:
    """Runs ``body`` in ``function`` where a scalar ``condition`` holds; ``hint`` is part of the names of its labels."""
    inside, after = function.label(f"{hint}.then"), function.label(f"{hint}.end")
    function.branch(condition.text, inside, after)
    function.begin(inside)
    body()
    function.jump(after)
    function.begin(after)


def static_trips(lower: Value, upper: Value, step: int) -> int | None:
    """How often a loop from ``lower`` below ``upper`` by ``step`` runs when both bounds are constants, else None."""
    if lower.text.startswith("%") or upper.text.startswith("%"):
        return None
    return max(0, -((int(lower.text) - int(upper.text)) // step))


def integer(function: Function, value: int) -> Value:
    """A 64-bit constant."""
    return constant(function, value, "i64")


def rounded_down(lower: Value, upper: Value, step: int) -> Value:
    """The largest ``lower + k step`` that is at most ``upper``."""
    trips = static_trips(lower, upper, 1)
    if trips is not None:
        return integer(lower.function, int(lower.text) + trips // step * step)
    if step & (step - 1):
        return lower + (upper - lower).binary("sdiv", step) * step
    return lower + ((upper - lower) & -step)


def offset(start: Value, count: int) -> Value:
    """``start + count``; a constant when the start is one."""
    return start + count if start.text.startswith("%") else integer(start.function, int(start.text) + count)
