"""A frame: everything that a call needs for one set of input shapes, so that calling is only a loop over actions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphkernel.errors import InputError
from graphkernel.runtime.memory import HOST, Memory
from graphkernel.runtime.plan.buffers import Lifetime, place, view_of
from graphkernel.runtime.steps.program import Buffer, Number, Program, Segment
from graphkernel.runtime.steps.steps import Action, Slots, known_extents
from graphkernel.runtime.tables.native_run import WholeRun, bind_group, groups, is_whole, whole_run
from graphkernel.runtime.tables.slot_facts import SlotFacts, slot_facts
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.bind import concrete_attrs, concrete_shape
from kernelgen.tensor.types import TensorType, evaluate

Layout = tuple[tuple[int, ...], "np.dtype[Any]"]

KEPT_EXTENTS = 2  # sets of extents, found by a segment, for which the next one stays bound


class Frame(NamedTuple):
    """Actions over slots in which constants and the buffers of intermediates are in place.

    Outputs lie in memory of their own: ``fresh`` are the slots that a call fills with new arrays, ``results`` the slots
    that an array of ``out=`` may take instead, with its position. ``outputs`` is what every output looks like; None where
    that depends on data. ``firsts`` are the numbers of the first step of each action: kernels in a row are one. Where all
    steps are kernels, ``whole`` runs them, and there are no actions.
    """

    actions: tuple[Action, ...]
    slots: Slots
    fresh: tuple[tuple[int, Layout], ...]
    results: tuple[tuple[int, int], ...]
    outputs: tuple[Layout | None, ...]
    arena_bytes: int
    firsts: tuple[int, ...]
    whole: WholeRun | None = None


def make_frame(program: Program, symbols: Mapping[str, int], memory: Memory = HOST) -> Frame:
    """The frame of a ``program`` for these values of its inputs' ``symbols``, with constants and intermediates in
    ``memory``.

    Raises ``InputError`` when an extent would be negative.
    """
    slots: Slots = [None] * program.size
    for held in program.constants:
        if held.array is None:
            raise InputError(f"the content of constant {held.name} is unknown; give it to parse as weights")
        slots[held.slot] = memory.constant(held.array)
    for slot, array in _numbers(program, symbols).items():
        slots[slot] = memory.take(array, str(slot))
    facts = slot_facts(program)
    first, *later = program.segments
    bound = _bound(program, first, symbols, slots, memory, facts)
    actions, firsts = bound.actions, bound.firsts
    for segment in later:
        actions += _Later(program, segment, symbols, slots, memory, facts).actions
        firsts += tuple(group[0] for group in groups(program, segment, memory.joins_steps))
    positions = {result.slot: position for position, result in reversed(list(enumerate(program.results)))}
    outputs = tuple(_layout_if_known(result.type, symbols) for result in program.results)
    results = tuple(
        (b.slot, positions[b.slot])
        for b in program.buffers
        if b.escapes and b.slot in positions and outputs[positions[b.slot]] is not None
    )
    return bound._replace(actions=actions, results=results, outputs=outputs, firsts=firsts)


def _bound(
    program: Program, part: Segment, symbols: Mapping[str, int], slots: Slots, memory: Memory, facts: SlotFacts
) -> Frame:
    """The frame of one segment alone; its buffers go into ``slots``."""
    for dim, name in program.differences.items():
        if symbols.keys() >= set(dim.symbols) and evaluate(dim, symbols) < 0:
            given = ", ".join(f"{symbol} = {symbols[symbol]}" for symbol in dim.symbols)
            raise InputError(f"{name} would have an extent of {dim}, which is negative with {given}")
    own = [buffer for buffer in program.buffers if part.first <= buffer.first < part.last]
    arena_bytes = _fill_arena(own, symbols, slots, memory)
    found = groups(program, part, memory.joins_steps)
    if memory.joins_steps and is_whole(program, found):
        return Frame((), slots, (), (), (), arena_bytes, (), whole_run(program, slots, symbols, facts))
    bound = (bind_group(program, group, slots, symbols, facts) for group in found)
    actions = memory.actions(program, part, slots, tuple(bound))
    fresh = tuple(
        (b.slot, _layout(b.type, symbols))
        for b in own
        if b.escapes and not (b.made_by_kernel and memory.is_made_by_kernels)
    )
    return Frame(actions, slots, fresh, (), (), arena_bytes, tuple(first for first, _ in found))


class _Later:
    """A segment that is bound in each call: what the extents are is read off what the earlier ones computed.

    A frame is in one call at a time, and so is this.
    """

    def __init__(
        self,
        program: Program,
        part: Segment,
        symbols: Mapping[str, int],
        slots: Slots,
        memory: Memory,
        facts: SlotFacts,
    ) -> None:
        self.program, self.part, self.symbols, self.slots, self.memory = program, part, symbols, slots, memory
        self._facts = facts
        self._now: tuple[Action, ...] = ()
        self._kept: OrderedDict[tuple[int, ...], Frame] = OrderedDict()

    @property
    def actions(self) -> tuple[Action, ...]:
        """One for each group of steps; the first binds them all."""
        count = len(groups(self.program, self.part, self.memory.joins_steps))
        first, *others = (self._action(number) for number in range(count))

        def begin(slots: Slots) -> None:
            self._bind(slots)
            first(slots)

        return (begin, *others)

    def _action(self, number: int) -> Action:
        return lambda slots: self._now[number](slots)

    def _bind(self, slots: Slots) -> None:
        earlier = [segment.reads for segment in self.program.segments if segment.first <= self.part.first]
        read = {name: int(slots[slot].shape[axis]) for reads in earlier for name, slot, axis in reads}
        frame = self._frame(read)
        for slot, array in enumerate(frame.slots):
            if array is not None and self.slots[slot] is None:
                slots[slot] = array
        for slot, layout in frame.fresh:
            if slots[slot] is None:
                slots[slot] = self.memory.empty(*layout)
        self._now = frame.actions

    def _frame(self, read: Mapping[str, int]) -> Frame:
        key = tuple(read.values())
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        symbols = {**self.symbols, **read}
        frame = _bound(self.program, self.part, symbols, self.slots.copy(), self.memory, self._facts)
        while len(self._kept) >= KEPT_EXTENTS:
            self._kept.popitem(last=False)
        self._kept[key] = frame
        return frame


def _numbers(program: Program, symbols: Mapping[str, int]) -> dict[int, np.ndarray[Any, Any]]:
    """What follows from the shapes, by slot: in place before a call, which then has no step for it."""
    found: dict[int, np.ndarray[Any, Any]] = {entry.slot: entry.array(symbols) for entry in program.extents}
    known = {held.slot: held.array for held in program.constants if held.array is not None and program.numbers}
    known.update(found)
    for number in program.numbers:
        made = _computed(number, known, symbols)
        known.update(made)
        found.update(made)
    return found


def _computed(number: Number, known: Mapping[int, np.ndarray], symbols: Mapping[str, int]) -> dict[int, np.ndarray]:
    """The results; of operands that are not known only the shape is read: they are arrays without memory."""
    operands = [
        known[slot]
        if slot in known
        else np.broadcast_to(np.empty((), of.dtype.numpy), concrete_shape(of.shape, symbols))
        for slot, of in number.operands
    ]
    with np.errstate(all="ignore"):
        found = number.node.op.meaning(*operands, attrs=concrete_attrs(number.node.attrs, symbols))
    arrays = found if isinstance(found, tuple) else (found,)
    return dict(zip(number.outputs, map(np.asarray, arrays), strict=True))


def _fill_arena(buffers: Sequence[Buffer], symbols: Mapping[str, int], slots: Slots, memory: Memory) -> int:
    inner = [buffer for buffer in buffers if not buffer.escapes]
    layouts = [_layout(buffer.type, symbols) for buffer in inner]
    sizes = [int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in layouts]
    offsets, total = place([Lifetime(size, b.first, b.last) for size, b in zip(sizes, inner, strict=True)])
    arena = memory.bytes(total)
    for buffer, (shape, dtype), offset in zip(inner, layouts, offsets, strict=True):
        slots[buffer.slot] = view_of(arena, offset, shape, dtype)
    return total


def _layout(type_: TensorType, symbols: Mapping[str, int]) -> Layout:
    return concrete_shape(type_.shape, symbols), type_.dtype.numpy


def _layout_if_known(type_: TensorType, symbols: Mapping[str, int]) -> Layout | None:
    return None if None in known_extents(type_.shape, symbols) else _layout(type_, symbols)
