"""Vector loops: invariants, an unrolled main loop, a masked remainder, then the reductions.

head   one masked vector up to an aligned address, only where a large output is streamed past the caches
main   ``unroll`` vectors at a time
rest   one vector at a time, masked where the extent asks for it; or single iterations where masks are slow
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgen.nest.nodes import For, Store
from kernelgen.targets.cpu import access
from kernelgen.targets.cpu.counting import conditional, counted_loop, rounded_down, static_trips
from kernelgen.targets.cpu.frame import Frame, Lanes, Target
from kernelgen.targets.cpu.indices import index_value, is_nonnegative
from kernelgen.targets.cpu.invariants import known_before
from kernelgen.targets.cpu.statements import finish_accumulator, run_block, start_accumulator
from kernelgen.targets.cpu.streaming import stream_of
from kernelgen.targets.cpu.values import Value, iota
from kernelgen.targets.cpu.vector_plan import VectorPlan

MIN_STREAMED_VECTORS = 8
"""Shorter rows spend too much time in head and rest."""


def vector_loop(frame: Frame, loop: For, plan: VectorPlan) -> None:
    """Prints a loop by its plan. When the bounds are unknown, nothing is evaluated unless it runs at least once."""
    lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)
    if static_trips(lower, upper, 1) is None:
        conditional(frame.function, lower.compare("slt", upper), lambda: _entered(frame, loop, plan, lower, upper))
    else:
        _entered(frame, loop, plan, lower, upper)


def _entered(frame: Frame, loop: For, plan: VectorPlan, lower: Value, upper: Value) -> None:
    function, wide = frame.function, plan.lanes * plan.unroll
    inner = replace(frame, known=known_before(frame, loop, plan.lanes))
    slots = {
        (r.buffer.name, r.index): [start_accumulator(frame, r, plan.lanes) for _ in range(plan.unroll)]
        for r in plan.reductions
    }
    copies = _Copies(inner, loop, plan, slots)
    stream = _stream(frame, loop, plan, static_trips(lower, upper, 1))
    start = lower if stream is None else _head(copies, stream, lower)
    middle = rounded_down(start, upper, wide)
    main = copies if stream is None else replace(copies, frame=replace(inner, is_aligned=True))
    counted_loop(function, start, middle, wide, lambda j: main.run(j, plan.unroll), "main")
    if not plan.scalar_tail:
        _rest(copies, middle, upper)
    for reduction in plan.reductions:
        finish_accumulator(frame, reduction, slots[reduction.buffer.name, reduction.index], plan.lanes)
    if plan.scalar_tail:
        counted_loop(function, middle, upper, 1, lambda j: _scalar(frame, loop, j), "tail")


@dataclass(frozen=True)
class _Copies:
    """The loop body for whole vectors; ``slots`` are the accumulators of every copy by target."""

    frame: Frame
    loop: For
    plan: VectorPlan
    slots: Mapping[Target, list[str]]

    def run(self, start: Value, count: int = 1, mask: Value | None = None) -> None:
        """``count`` vectors from ``start`` on."""
        run_block(tuple(self._copy(start, number, mask) for number in range(count)), self.loop.body)

    def _copy(self, start: Value, number: int, mask: Value | None) -> Frame:
        start = start + number * self.plan.lanes if number else start
        inner = self.frame.with_variable(self.loop.var, start, is_nonnegative(self.frame, self.loop.lower))
        accumulators = {target: slots[number] for target, slots in self.slots.items()}
        return replace(inner, lanes=Lanes(self.loop.var, start, self.plan.lanes), mask=mask, accumulators=accumulators)


def _rest(copies: _Copies, lower: Value, upper: Value) -> None:
    lanes, trips = copies.plan.lanes, static_trips(lower, upper, 1)
    is_whole = trips is not None and trips % lanes == 0

    def body(start: Value) -> None:
        copies.run(start, mask=None if is_whole else _first_lanes(upper - start, lanes))

    counted_loop(copies.frame.function, lower, upper, lanes, body, "rest")


def _scalar(frame: Frame, loop: For, counter: Value) -> None:
    run_block((frame.with_variable(loop.var, counter, is_nonnegative(frame, loop.lower)),), loop.body)


def _stream(frame: Frame, loop: For, plan: VectorPlan, trips: int | None) -> Store | None:
    is_long = trips is not None and trips >= MIN_STREAMED_VECTORS * plan.lanes * plan.unroll
    return stream_of(loop, frame.streamed) if is_long and not plan.scalar_tail else None


def _head(copies: _Copies, stream: Store, lower: Value) -> Value:
    """Runs the iterations before the first aligned vector, as the upper lanes of one; returns where that vector starts."""
    frame, lanes = copies.frame, copies.plan.lanes
    at_lower = replace(frame, lanes=Lanes(copies.loop.var, lower, lanes))
    skipped = access.misaligned_lanes(at_lower, stream.buffer, stream.index)
    is_needed, start = skipped.compare("ne", 0), lower - skipped
    mask = iota(frame.function, "i32", lanes).compare("sge", skipped.convert("trunc", "i32"))
    conditional(frame.function, is_needed, lambda: copies.run(start, mask=mask), "head")
    return is_needed.select(start + lanes, lower)


def _first_lanes(count: Value, lanes: int) -> Value:
    """The mask of the first ``count`` lanes."""
    return iota(count.function, "i32", lanes).compare("slt", count.intrinsic("smin", lanes).convert("trunc", "i32"))
