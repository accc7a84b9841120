"""A table beside other steps, or as all of a graph: what is done before and behind one call into machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.plan.buffers import aligned_array
from graphkernel.runtime.steps.steps import KernelStep, PlacesStep, ViewStep
from graphkernel.runtime.tables.bind_table import GivenArray, TableMaker, is_kernel, native
from graphkernel.runtime.tables.results import REUSED_FROM, REUSED_TO, Results
from graphkernel.runtime.tables.session_call import is_callable
from kernelgen.errors import ArgumentError
from kernelgen.native.signature import Argument
from kernelgen.native.table import Given
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.bind import concrete_shape
from kernelgen.tensor.types import is_object

if TYPE_CHECKING:
    from graphkernel.runtime.steps.program import Named, Output, Program, Segment
    from graphkernel.runtime.steps.steps import Action, Slots, Step
    from graphkernel.runtime.tables.slot_facts import SlotFacts
    from graphkernel.runtime.tables.watch import Watch
    from kernelgen.native.table import Table

Array = np.ndarray[Any, np.dtype[Any]]
Group = tuple[int, int]
"""The numbers of the first step and of the one behind the last."""


class Left(NamedTuple):
    """What a run leaves in a slot: an array that it was given or made, with these extents.

    ``position`` is None for a view of what lies in the slot ``root`` and no kernel of the run takes.
    """

    slot: int
    root: int
    position: int | None
    shape: tuple[int, ...]


class NativeRun:
    """Steps that are kernels, as one action over slots."""

    def __init__(self, table: Table, given: tuple[GivenArray, ...], left: tuple[Left, ...], watch: Watch) -> None:
        self.table, self.given, self.left, self.watch = table, given, left, watch
        self._made = tuple(position for position, entry in enumerate(given) if entry.is_made)

    def __call__(self, slots: Slots) -> None:
        """Runs the steps."""
        arrays: list[Any] = [slots[entry.slot] if entry.slot >= 0 else None for entry in self.given]
        for position in self._made:
            if arrays[position] is None:
                arrays[position] = self.given[position].empty()
        self.watch.begin()
        run(self.table, arrays)
        self.watch.check()
        self.watch.leave(slots)
        for slot, root, position, shape in self.left:
            slots[slot] = (slots[root] if position is None else arrays[position]).reshape(shape)


class WholeRun:
    """A graph of kernels: the table takes the graph's inputs, then the outputs that it assigns to no input.

    ``fast(*inputs, *outputs)`` checks and runs, and raises ArgumentError where an array does not fit. ``make`` makes the
    output where there is one. ``sources`` says of each result which of these arrays it is, ``made`` which results are made.
    ``is_parallel`` when kernels of it have loops for several threads. Behind the outputs come what a library has allocated
    for the slots ``allocated``.
    """

    def __init__(
        self,
        table: Table,
        makers: tuple[Callable[[], Array], ...],
        watch: Watch,
        sources: tuple[int, ...],
        is_parallel: bool,
        allocated: tuple[int, ...],
    ) -> None:
        self.table, self.makers, self.watch, self.sources = table, makers, watch, sources
        self.is_parallel, self.allocated = is_parallel, allocated
        inputs, given = len(table.given) - len(makers), len(table.given)
        self.made = tuple(number for number, source in enumerate(sources) if inputs <= source < given)
        self.is_fast = self.table.fast is not None
        fast = self.table.fast or self.table.run_unchecked
        self.fast: Callable[..., None] = _watched(fast, self.watch) if self.watch else fast
        self.make = self.makers[0] if len(self.makers) == 1 else None

    def outputs(self) -> tuple[Array, ...]:
        """New arrays for the outputs."""
        return tuple([make() for make in self.makers])

    def results(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
        """What a call gives back, of what it was given, what it made, and what a library allocated."""
        arrays = (*inputs, *outputs)
        if self.allocated:
            found: dict[int, Array] = {}
            self.watch.leave(found)
            arrays = (*arrays, *[found[slot] for slot in self.allocated])
        return tuple([arrays[source] for source in self.sources])


def _watched(run: Callable[..., None], watch: Watch) -> Callable[..., None]:
    begin, check = watch.begin, watch.check

    def watched(*arrays: Array) -> None:
        begin()
        run(*arrays)
        check()

    return watched


def groups(program: Program, part: Segment, joins: bool) -> tuple[Group, ...]:
    """The steps of the segment ``part`` of a ``program`` in order.

    Kernels in a row, with views and regions of a library between them, are one group where ``joins`` allows it. It ends
    behind a region whose results the library allocates. Where no kernel is, there is no machine code to run a region.
    """
    told = _told(program, part) if joins and any(map(is_kernel, program.steps)) else None
    found: list[Group] = []
    for number in range(part.first, part.last):
        is_more = joins and found and _joins(program.steps[number], told) and _goes_on(program.steps[number - 1], told)
        found[len(found) - 1 :] = [(found[-1][0], number + 1)] if is_more else [*found[-1:], (number, number + 1)]
    return tuple(found)


def _told(program: Program, part: Segment) -> frozenset[str]:
    """The symbols that are known when a segment is bound."""
    types = [given.type for given in program.inputs]
    reads = [name for segment in program.segments if segment.first <= part.first for name, _, _ in segment.reads]
    return frozenset([*(name for of in types for name in of.symbols), *(of.name for of in program.derived), *reads])


def is_whole(program: Program, found: Sequence[Group]) -> bool:
    """Whether one table is all of a program."""
    if len(program.segments) != 1 or len(found) != 1 or any(is_object(given.type.dtype) for given in program.inputs):
        return False
    unsized = set(_allocated(program))
    assigned = {number for _, number in program.aliases}
    is_given = not any(
        end.slot in unsized and (end.copy or number in assigned) for number, end in enumerate(program.outputs)
    )
    symbols = _told(program, program.segments[0])
    return is_given and any(map(is_kernel, program.steps)) and _is_native(program.steps, symbols)


def _allocated(program: Program) -> tuple[int, ...]:
    """The slots whose content libraries allocate."""
    regions = (step for step in program.steps if isinstance(step, RegionStep))
    return tuple(slot for step in regions for slot in step.outputs if slot in step.unsized)


def bind_group(program: Program, group: Group, slots: Slots, symbols: Mapping[str, int], facts: SlotFacts) -> Action:
    """The action of a group."""
    steps = program.steps[slice(*group)]
    if not _is_native(steps, frozenset(symbols)) or not any(map(is_kernel, program.steps)):
        return _one_after_the_other(tuple([step.bind(slots, symbols) for step in steps]))
    maker = _table_maker(program, group, slots, symbols, facts)
    wanted = (slot for step in steps for slot in _given_by(step) if facts.last_read.get(slot, -1) >= group[1])
    roots = [(slot, maker.roots.get(slot, slot)) for slot in wanted if slots[slot] is None]
    left = tuple(Left(slot, root, maker.positions.get(root), maker.shape(slot)) for slot, root in roots)
    table = maker.table([(n, e.argument) for n, e in enumerate(maker.given)])
    return NativeRun(table, tuple(maker.given), left, maker.watch)


def _given_by(step: Step) -> tuple[int, ...]:
    """The slots of what it leaves in arrays of the table."""
    return step.made if isinstance(step, RegionStep) else step.outputs


def _table_maker(
    program: Program, group: Group, slots: Slots, symbols: Mapping[str, int], facts: SlotFacts
) -> TableMaker:
    """It has taken the steps of a group. A kernel of the program has the code that runs them."""
    first = next(step for step in program.steps if is_kernel(step))
    maker = TableMaker(native(cast("KernelStep", first))[0].caller, slots, symbols, facts.types)
    for number in range(*group):
        maker.take(number, program.steps[number])
    return maker


def _one_after_the_other(actions: Sequence[Action]) -> Action:
    """The action of a step, or of views in a row."""
    if len(actions) == 1:
        return actions[0]

    def call(slots: Slots) -> None:
        for action in actions:
            action(slots)

    return call


def _joins(step: Step, told: frozenset[str] | None) -> bool:
    """Whether it may be part of a table; a region, where the symbols are known that are ``told``, and machine code is."""
    if isinstance(step, RegionStep):
        return told is not None and is_callable(step, told)
    return isinstance(step, ViewStep | PlacesStep) or is_kernel(step)


def _goes_on(step: Step, told: frozenset[str] | None) -> bool:
    """Whether another one may follow it in a table."""
    return _joins(step, told) and not (isinstance(step, RegionStep) and step.unsized)


def _is_native(steps: Sequence[Step], told: frozenset[str]) -> bool:
    """Whether a table runs the steps."""
    is_any = any(isinstance(step, RegionStep) or is_kernel(step) for step in steps)
    return is_any and all(_joins(step, told) for step in steps)


def whole_run(program: Program, slots: Slots, symbols: Mapping[str, int], facts: SlotFacts) -> WholeRun:
    """The run of a program all of whose steps are kernels and views. Outputs and assigned inputs are copied to at the end."""
    maker = _table_maker(program, (0, len(program.steps)), slots, symbols, facts)
    inputs = [cast("Given", maker.place(slot, of.dtype)) for _, of, slot in program.inputs]
    assigned = {number: position for position, number in program.aliases}
    ends = list(zip(program.outputs, program.results, strict=True))
    allocated = _allocated(program)
    given_back = {number: allocated.index(end.slot) for number, (end, _) in enumerate(ends) if end.slot in allocated}
    aside = {
        number: _output(maker, *end)
        for number, end in enumerate(ends)
        if number not in given_back and (number not in assigned or end[0].copy)
    }
    for number, position in assigned.items():
        slot, of = program.outputs[number].slot, program.results[number].type.dtype
        source = aside.pop(number, None) or maker.place(slot, of)
        maker.copy(program.inputs[position].name, inputs[position], source, maker.size(slot, of))
    outputs, made = list(aside.values()), list(aside)
    named = zip((*inputs, *outputs), (*program.inputs, *(program.results[number] for number in made)), strict=True)
    order = [(at.position, Argument(n, of.dtype, concrete_shape(of.shape, symbols), False)) for at, (n, of, _) in named]
    table = maker.table(order)
    by_kernels = {buffer.slot for buffer in program.buffers if buffer.made_by_kernel}
    slots_of = [maker.given[place.position].slot for place in outputs]
    makers = zip(table.given[len(inputs) :], slots_of, strict=True)
    given = tuple(_maker(argument, slot not in by_kernels, is_only=not symbols) for argument, slot in makers)
    places = assigned | {number: len(inputs) + place for place, number in enumerate(made)}
    places |= {number: len(table.given) + place for number, place in given_back.items()}
    is_parallel = any(entry.team is not None for entry in maker.entries)
    sources = tuple(places[number] for number in range(len(ends)))
    return WholeRun(table, given, maker.watch, sources, is_parallel, allocated)


def _output(maker: TableMaker, output: Output, result: Named) -> Given:
    """Where an output goes: it is made there, or copied there behind all steps."""
    of, size = result.type.dtype, maker.size(output.slot, result.type.dtype)
    place = maker.place(output.slot, of)
    if isinstance(place, Given) and not output.copy:
        return place
    target = maker.give(-1 - len(maker.given), result.name, of, maker.shape(output.slot), is_made=True)
    maker.copy(result.name, target, place, size)
    return target


def _maker(argument: Argument, is_aligned: bool, is_only: bool) -> Callable[[], Array]:
    """What makes an output; memory of one that has this shape in all calls is kept."""
    shape, of = cast("tuple[int, ...]", argument.shape), argument.dtype.numpy
    size = prod(shape) * of.itemsize
    if is_only and REUSED_FROM <= size <= REUSED_TO:
        return Results(shape, of, size)
    return partial(aligned_array, shape, of) if is_aligned else partial(np.empty, shape, of)


def run(table: Table, arrays: Sequence[Array]) -> None:
    """Runs the table, on copies of arrays that lie otherwise than machine code takes them. Raises ArgumentError."""
    if table.fast is not None:
        try:
            table.fast(*arrays)
        except ArgumentError:
            _run_carefully(table, arrays)
    else:
        _run_carefully(table, arrays)


def _run_carefully(table: Table, arrays: Sequence[Array]) -> None:
    for argument, array in zip(table.given, arrays, strict=True):
        may_be_used = array.flags.writeable or not argument.is_written
        if array.dtype != argument.dtype.numpy or array.shape != argument.shape or not may_be_used:
            raise ArgumentError(f"{argument}, got {array.dtype}{list(array.shape)}")
    fitting = [np.require(array, requirements=("C", "A")) for array in arrays]
    written = [position for position, argument in enumerate(table.given) if argument.is_written]
    if any(np.may_share_memory(arrays[one], arrays[other]) for one, other in combinations(written, 2)):
        raise ArgumentError("two arrays that a graph writes, of out= or updated in place, overlap")
    for position, array in enumerate(fitting):
        if position not in written and any(np.may_share_memory(array, arrays[one]) for one in written):
            fitting[position] = array.copy()
    table.run_unchecked(fitting)
    for position in written:
        if fitting[position] is not arrays[position]:
            np.copyto(arrays[position], fitting[position])
