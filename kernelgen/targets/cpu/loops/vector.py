"""Vector loops: invariants, an unrolled main loop, a masked remainder, then the reductions.

head   one masked vector up to an aligned address, only where a large output is streamed past the caches
main   ``unroll`` vectors at a time; twice, streamed and not, where the sizes decide
rest   one vector at a time, masked where the extent asks for it; or single iterations where masks are slow
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgen.nest.nodes import For, Store
from kernelgen.targets.cpu.loops.invariants import known_before
from kernelgen.targets.cpu.loops.streaming import IS_LARGE, Stream, stream_of
from kernelgen.targets.cpu.loops.vector_plan import VectorPlan, static_trips_of
from kernelgen.targets.cpu.statements import access
from kernelgen.targets.cpu.statements.statements import finish_accumulator, run_alone, run_block, start_accumulator
from kernelgen.targets.cpu.text.counting import conditional, counted_loop, offset, rounded_down, static_trips
from kernelgen.targets.cpu.text.indices import index_value, is_nonnegative
from kernelgen.targets.cpu.text.scope import Frame, Lanes, Target
from kernelgen.targets.cpu.text.values import Value, constant, iota

MIN_STREAMED_VECTORS = 8
"""Shorter rows spend too much time in head and rest."""


def vector_loop(frame: Frame, loop: For, plan: VectorPlan) -> None:
    """Prints ``loop`` by its ``plan`` into ``frame``. When the bounds are unknown, nothing is evaluated unless it runs
    at least once.
    """
    lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)
    if static_trips_of(loop) == plan.lanes * plan.unroll:
        _together(frame, loop, plan, lower, plan.unroll)
    elif static_trips(lower, upper, 1) is None:
        conditional(frame.function, lower.compare("slt", upper), lambda: _entered(frame, loop, plan, lower, upper))
    else:
        _entered(frame, loop, plan, lower, upper)


def _together(frame: Frame, loop: For, plan: VectorPlan, lower: Value, count: int) -> None:
    """A few vectors side by side, without a loop: addresses differ by constants, and registers hold what stays."""
    inner = _body_of(frame, loop, plan, streamed=None)
    slots = {
        (r.buffer.name, r.index): [start_accumulator(frame, r, plan.lanes) for _ in range(count)]
        for r in plan.reductions
    }
    _Copies(inner, loop, plan, slots).run(lower, count)
    for reduction in plan.reductions:
        finish_accumulator(frame, reduction, slots[reduction.buffer.name, reduction.index], plan.lanes)


def _entered(frame: Frame, loop: For, plan: VectorPlan, lower: Value, upper: Value) -> None:
    stream = _stream(frame, loop, plan, static_trips(lower, upper, 1))
    inner = _body_of(frame, loop, plan, frame.streamed if stream else None)
    slots = {
        (r.buffer.name, r.index): [start_accumulator(frame, r, plan.lanes) for _ in range(plan.unroll)]
        for r in plan.reductions
    }
    copies = _Copies(inner, loop, plan, slots)
    middle = _main(copies, stream, lower, upper)
    if not plan.scalar_tail:
        _rest(copies, middle, upper)
    for reduction in plan.reductions:
        finish_accumulator(frame, reduction, slots[reduction.buffer.name, reduction.index], plan.lanes)
    if plan.scalar_tail:
        counted_loop(frame.function, middle, upper, 1, lambda j: _scalar(frame, loop, j), "tail")


def _body_of(frame: Frame, loop: For, plan: VectorPlan, streamed: str | None) -> Frame:
    """``frame`` for the body of ``loop`` by its ``plan``. One in which nothing is ``streamed`` has no head: its first vector
    starts where the loop does.
    """
    return replace(frame, known=known_before(frame, loop, plan.lanes), streamed=streamed)


def _stream(frame: Frame, loop: For, plan: VectorPlan, trips: int | None) -> Stream | None:
    """What ``loop`` stores past the caches in ``frame`` by its ``plan``: None where it never does, as where its ``trips``
    are few.
    """
    if plan.scalar_tail or (trips is not None and trips < _least_streamed(plan)):
        return None
    return stream_of(loop, frame.streamed, plan.lanes)


def _least_streamed(plan: VectorPlan) -> int:
    return MIN_STREAMED_VECTORS * plan.lanes * plan.unroll


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
        start = offset(start, number * self.plan.lanes) if number else start
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
    run_alone(frame.with_variable(loop.var, counter, is_nonnegative(frame, loop.lower)), loop.body)


def _main(copies: _Copies, stream: Stream | None, lower: Value, upper: Value) -> Value:
    """The groups of whole vectors of ``copies`` from ``lower`` to ``upper``, past the caches where there is a ``stream``;
    returns where the rest starts.
    """
    if stream is None:
        return _groups(copies, lower, upper)
    pays = _pays(copies, stream, lower, upper)
    streaming = replace(copies, frame=replace(copies.frame, is_aligned=True))
    start = _head(copies, stream.first, lower, pays)
    if not pays.text.startswith("%"):
        return _groups(streaming, start, upper)
    start = _groups(streaming, start, pays.select(upper, start), "streamed")
    return _groups(copies, start, upper)


def _groups(copies: _Copies, lower: Value, upper: Value, hint: str = "main") -> Value:
    unroll = copies.plan.unroll
    wide = unroll * copies.plan.lanes
    middle = rounded_down(lower, upper, wide)
    counted_loop(copies.frame.function, lower, middle, wide, lambda j: copies.run(j, unroll), hint)
    return middle


def _pays(copies: _Copies, stream: Stream, lower: Value, upper: Value) -> Value:
    """Whether the loop is long and the kernel large enough to stream: a condition or ``true``."""
    pays = constant(copies.frame.function, True, "i1")
    if IS_LARGE in copies.frame.variables:
        pays = _both(pays, copies.frame.variables[IS_LARGE].compare("ne", 0))
    if static_trips(lower, upper, 1) is None:
        pays = _both(pays, (upper - lower).compare("sge", _least_streamed(copies.plan)))
    for other in stream.others:
        together = _misaligned(copies, lower, other).compare("eq", _misaligned(copies, lower, stream.first))
        pays = _both(pays, together)
    return pays


def _both(left: Value, right: Value) -> Value:
    return left & right if left.text.startswith("%") else right


def _misaligned(copies: _Copies, lower: Value, store: Store) -> Value:
    at_lower = replace(copies.frame, lanes=Lanes(copies.loop.var, lower, copies.plan.lanes))
    return access.misaligned_lanes(at_lower, store.buffer, store.index)


def _head(copies: _Copies, stream: Store, lower: Value, pays: Value) -> Value:
    """Runs the iterations before the first aligned vector, as the upper lanes of one; returns where that vector starts."""
    frame, lanes = copies.frame, copies.plan.lanes
    skipped = _misaligned(copies, lower, stream)
    is_needed, start = skipped.compare("ne", 0), lower - skipped
    if pays.text.startswith("%"):
        is_needed = is_needed & pays
    mask = iota(frame.function, "i32", lanes).compare("sge", skipped.convert("trunc", "i32"))
    conditional(frame.function, is_needed, lambda: copies.run(start, mask=mask), "head")
    return is_needed.select(start + lanes, lower)


def _first_lanes(count: Value, lanes: int) -> Value:
    """The mask of the first ``count`` lanes."""
    return iota(count.function, "i32", lanes).compare("slt", count.intrinsic("smin", lanes).convert("trunc", "i32"))
