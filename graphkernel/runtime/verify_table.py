"""Holds tables against the steps that they stand for: an opinion that shares no code with what binds them.

It follows what every piece of memory holds, step by step, by addresses alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from graphkernel.errors import VerifyError
from graphkernel.runtime.invocation import Frame, make_frame
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.steps.program import Program
from graphkernel.runtime.steps.steps import KernelStep, PlacesStep, Slots, Step, ViewStep
from graphkernel.runtime.tables.bind_table import native
from graphkernel.runtime.tables.native_run import NativeRun
from kernelgen.native.entry import ENTRY
from kernelgen.native.session import bytes_of
from kernelgen.native.table import Given, Place, Table, TableStep
from kernelgen.native.wrapper import COPY, PLACES, SESSION
from kernelgen.tensor.dims import evaluate

INVARIANTS: dict[str, str] = {
    "T1": "a table calls the kernels of its steps in their order, looks at their indices, and copies besides",
    "T2": "a kernel reads each operand where its content lies then, all of it",
    "T3": "what a step writes lies apart from all else that it is given",
    "T4": "constants, and inputs that the graph does not assign to, are never written",
    "T5": "behind the last step results lie where they are looked for",
    "T6": "an array of a call that is written is checked to be writeable",
}


class Span(NamedTuple):
    """Bytes from ``start`` to before ``end`` of an array that a call gives, or, of None, of the process's memory."""

    of: int | None
    start: int
    end: int

    def meets(self, other: Span) -> bool:
        """Whether they share a byte."""
        return self.of == other.of and self.start < other.end and other.start < self.end


def verify_frame(program: Program, frame: Frame) -> None:
    """Raises :class:`~graphkernel.errors.VerifyError` with the number of the first broken invariant of a frame's tables."""
    for number, message in broken(program, frame):
        raise VerifyError(number, f"{message} in a table ({INVARIANTS[number]})")


def verify_tables(program: Program) -> None:
    """The same for the tables of a program whose sizes are all known, and that has its constants."""
    types = [given.type for given in program.inputs]
    if not any(of.symbols for of in types) and all(held.array is not None for held in program.constants):
        verify_frame(program, make_frame(program, {}))


def broken(program: Program, frame: Frame) -> Iterator[tuple[str, str]]:
    """All broken invariants of the tables of a frame, with what breaks them."""
    assigned = {program.inputs[position].slot for position, _ in program.aliases}
    kept = {held.slot for held in program.constants} | {slot for number in program.numbers for slot in number.outputs}
    kept |= {entry.slot for entry in program.extents} | {given.slot for given in program.inputs} - assigned
    if frame.whole is not None:
        table, count = frame.whole.table, len(program.inputs)
        before = {position: given.slot for position, given in enumerate(program.inputs)}
        after = [(count + place, program.outputs[number].slot) for place, number in enumerate(frame.whole.made)]
        after += [(position, program.outputs[output].slot) for position, output in program.aliases]
        yield from _Contents(table, frame.slots, kept).broken(program.steps, before, after)
    ends = (*frame.firsts[1:], len(program.steps)) if frame.actions else ()
    for action, first, end in zip(frame.actions, frame.firsts, ends, strict=True):
        if isinstance(action, NativeRun):
            through = {buffer.slot for buffer in program.buffers if buffer.first < first and end <= buffer.last}
            before = {number: entry.slot for number, entry in enumerate(action.given) if not entry.is_made}
            after = [(left.position, left.slot) for left in action.left if left.position is not None]
            yield from _Contents(action.table, frame.slots, kept | through).broken(
                program.steps[first:end], before, after
            )


@dataclass
class _Contents:
    """What lies where: the slot whose value each span holds. A view has the value of its source."""

    table: Table
    slots: Slots
    kept: set[int]
    held: dict[Span, int] = field(default_factory=dict[Span, int])
    lasting: list[Span] = field(default_factory=list[Span])
    values: dict[int, int] = field(default_factory=dict[int, int])

    def broken(
        self, steps: Sequence[Step], before: Mapping[int, int], after: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[str, str]]:
        """What is wrong with the table of these steps. ``before`` and ``after`` say which slots' values given arrays hold."""
        self._begin(steps, before)
        left = list(self.table.steps)
        for step in steps:
            if isinstance(step, ViewStep):
                self.values[step.outputs[0]] = self._value(step.inputs[0])
            elif isinstance(step, PlacesStep):
                yield from self._copies(left)
                if not left or left[0].code != self.table.caller.addresses[PLACES]:
                    yield "T1", f"{step.name} does not look at its indices"
                    return
                yield from self._places(step, left.pop(0))
            elif isinstance(step, RegionStep):
                yield from self._copies(left)
                if not left or left[0].code != self.table.caller.addresses[SESSION]:
                    yield "T1", f"{step.name} does not run its session"
                    return
                yield from self._session(step, left.pop(0))
            elif isinstance(step, KernelStep):
                yield from self._copies(left)
                if not left or left[0].code != native(step)[0].library.addresses[ENTRY]:
                    yield "T1", f"{step.name} is not called where it should be"
                    return
                yield from self._kernel(step, left.pop(0))
        yield from self._copies(left)
        if left:
            yield "T1", f"{left[0].name} is called, which is no step any more"
        for position, slot in after:
            if not self._holds(self._given(position), slot):
                yield "T5", f"{self.table.given[position].name} does not hold slot {slot}"

    def _begin(self, steps: Sequence[Step], before: Mapping[int, int]) -> None:
        made = {slot for step in steps for slot in step.outputs}
        for slot in ({slot for step in steps for slot in step.inputs} | self.kept) - made:
            if (array := self.slots[slot]) is not None:
                span = Span(None, array.ctypes.data, array.ctypes.data + array.nbytes)
                self._put(span, slot)
        for position, slot in before.items():
            self._put(self._given(position), slot)

    def _put(self, span: Span, slot: int) -> None:
        """What is there before the steps; slots may be the same constant."""
        self.values[slot] = self.held.setdefault(span, slot)
        if slot in self.kept:
            self.lasting.append(span)

    def _copies(self, left: list[TableStep]) -> Iterator[tuple[str, str]]:
        """Follows the copies at the front of ``left``, and takes them away."""
        while left and left[0].code == self.table.caller.addresses[COPY]:
            step = left.pop(0)
            target, source = (_span(place, step.sizes[0]) for place in step.arguments)
            if target.meets(source):
                yield "T3", f"{step.name} is copied onto itself"
            yield from self._write(step.name, target, self.held.get(source))

    def _places(self, step: PlacesStep, called: TableStep) -> Iterator[tuple[str, str]]:
        """Follows one look at indices, which are written anew."""
        target, source = (_span(place, called.sizes[0]) for place in called.arguments[:2])
        if not self._holds(source, step.inputs[0]) and not self._is_copied_constant(step.inputs[0], source):
            yield "T2", f"{step.name} looks at slot {step.inputs[0]} where something else lies"
        if target.meets(source):
            yield "T3", f"{step.name} writes over the indices that it looks at"
        yield from self._write(step.name, target, step.outputs[0])

    def _session(self, step: RegionStep, called: TableStep) -> Iterator[tuple[str, str]]:
        """Follows one run of a session: what it reads must be there, and what it writes lies apart from all else."""
        sizes = bytes_of(called.sizes[0])
        spans = list(map(_span, called.arguments, sizes))
        for slot, span in zip(step.inputs, spans, strict=False):
            if not self._holds(span, slot) and not self._is_copied_constant(slot, span):
                yield "T2", f"{step.name} reads slot {slot} where something else lies"
        for number, slot in enumerate(step.outputs, len(step.inputs)):
            if any(spans[number].meets(other) for at, other in enumerate(spans) if at != number):
                yield "T3", f"{step.name} writes slot {slot} over what else it is given"
            if slot not in step.unsized:
                yield from self._write(step.name, spans[number], slot)

    def _kernel(self, step: KernelStep, called: TableStep) -> Iterator[tuple[str, str]]:
        """Follows one call: what it reads must be there, and what it writes lies apart from the rest."""
        entry, signature = native(step)
        sizes = dict(zip(signature.sizes, called.sizes, strict=True))
        spans = [
            _span(place, prod(evaluate(dim, sizes) for dim in argument.shape) * argument.dtype.itemsize)
            for place, argument in zip(called.arguments, entry.arguments, strict=True)
        ]
        for slot, span in zip(step.inputs, spans, strict=False):
            if not self._holds(span, slot) and not self._is_copied_constant(slot, span):
                yield "T2", f"{step.name} reads slot {slot} where something else lies"
        made = len(signature.inputs)
        results = {position: slot for slot, position in step.stored}
        results.update(enumerate(step.made, made))
        for number, argument in enumerate(entry.arguments):
            if argument.is_written:
                if any(spans[number].meets(other) for at, other in enumerate(spans) if at != number):
                    yield "T3", f"{step.name} writes {argument.name} over what else it is given"
                yield from self._write(step.name, spans[number], results.get(number))

    def _write(self, name: str, span: Span, value: int | None) -> Iterator[tuple[str, str]]:
        for kept in self.lasting:
            if span.meets(kept):
                yield "T4", f"{name} writes over it"
        if span.of is not None and not self.table.given[span.of].is_written:
            yield "T6", f"{name} writes {self.table.given[span.of].name}"
        for other in [other for other in self.held if other.meets(span)]:
            del self.held[other]
        if value is not None:
            self.held[span] = value

    def _holds(self, span: Span, slot: int) -> bool:
        """Whether these bytes, all of them, are the value of a slot."""
        return span.start == span.end or self.held.get(span) == self._value(slot)

    def _value(self, slot: int) -> int:
        return self.values.get(slot, slot)

    def _given(self, position: int) -> Span:
        argument = self.table.given[position]
        return Span(position, 0, prod(evaluate(dim, {}) for dim in argument.shape) * argument.dtype.itemsize)

    def _is_copied_constant(self, slot: int, span: Span) -> bool:
        """Whether the bytes are those of an array that lies otherwise than machine code takes it."""
        array = self.slots[slot]
        if array is None or span.of is not None or array.flags.carray or array.nbytes != span.end - span.start:
            return False
        return ctypes.string_at(span.start, array.nbytes) == array.tobytes()


def _span(place: Place, size: int) -> Span:
    return Span(place.position, 0, size) if isinstance(place, Given) else Span(None, place, place + size)
