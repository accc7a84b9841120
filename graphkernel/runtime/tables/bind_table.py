"""From steps over slots to a table over addresses: where everything lies that kernels read and write.

What is in its slot when a frame is made has an address that stays: intermediates in the arena, constants, what follows from
shapes. All else is given in each call: inputs, outputs, results of libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np

from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.plan.buffers import ALIGNMENT, aligned_bytes
from graphkernel.runtime.steps.steps import KernelStep, PlacesStep, Slots, Step, ViewStep
from graphkernel.runtime.tables.session_call import SessionCall
from graphkernel.runtime.tables.watch import Watch
from kernelgen.composite.bind_sizes import bind
from kernelgen.native.call import NativeKernel
from kernelgen.native.entry import ENTRY, CpuEntry
from kernelgen.native.library import Library
from kernelgen.native.signature import Argument, Signature
from kernelgen.native.table import Given, Lookup, Place, Table, TableStep, copying, looking
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.bind import concrete_shape
from kernelgen.tensor.dims import evaluate
from kernelgen.tensor.dtypes import DType
from kernelgen.tensor.types import TensorType

MANY_STEPS = 8
"""So many steps are long enough to let other Python threads run meanwhile."""


class GivenArray(NamedTuple):
    """An array that a table is given: what it must be, and its slot. ``is_made`` when the table's call makes it anew."""

    argument: Argument
    slot: int
    is_made: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents, all of them known."""
        return cast("tuple[int, ...]", self.argument.shape)

    def empty(self) -> np.ndarray[Any, Any]:
        """An uninitialised array like it."""
        return np.empty(self.shape, self.argument.dtype.numpy)


def is_kernel(step: Step) -> bool:
    """Whether the step is machine code of ours."""
    return (
        isinstance(step, KernelStep)
        and step.awaited is None
        and step.ahead is None
        and isinstance(step.kernel, NativeKernel)
        and isinstance(step.kernel.entry, CpuEntry)
    )


class _Scratch(NamedTuple):
    """Bytes from this offset on of memory that steps use one after the other."""

    offset: int


class TableMaker:
    """Takes steps in order. ``slots`` holds what stays; views of that are put there too. ``caller`` runs the table."""

    def __init__(
        self, caller: Library, slots: Slots, symbols: Mapping[str, int], types: Mapping[int, TensorType]
    ) -> None:
        self.caller, self.slots, self.symbols, self.types = caller, slots, symbols, types
        self.watch = Watch()
        self.given: list[GivenArray] = []
        self.roots: dict[int, int] = {}
        self.positions: dict[int, int] = {}
        self.addresses: dict[int, int] = {}
        self.written: set[int] = set()
        self.steps: list[TableStep] = []
        self.entries: list[CpuEntry] = []
        self.keeps: list[object] = []
        self.scratch_bytes = 0
        self.runs_sessions = False

    def give(self, slot: int, name: str, of: DType, shape: Sequence[int], is_made: bool = False) -> Given:
        """The next array of the call, for the memory of this slot."""
        self.positions[slot] = len(self.given)
        self.given.append(GivenArray(Argument(name, of, tuple(shape), False), slot, is_made))
        return Given(len(self.given) - 1)

    def take(self, number: int, step: Step) -> None:
        """One more step, and its number: a kernel, a view, one that looks at indices, or a region of a library."""
        if isinstance(step, ViewStep):
            self._view(step.outputs[0], step.inputs[0], concrete_shape(step.shape, self.symbols))
        elif isinstance(step, KernelStep):
            self._kernel(step)
        elif isinstance(step, PlacesStep):
            self._places(step)
        elif isinstance(step, RegionStep):
            self._region(number, step)

    def copy(self, name: str, target: Given, source: Place, size: int) -> None:
        """One more step, which copies so many bytes unless they lie there already."""
        if target != source:
            self.written.add(target.position)
            self.steps.append(copying(name, self.caller, target, source, size))

    def table(self, order: Sequence[tuple[int, Argument]]) -> Table:
        """All steps so far. A call gives these arrays in this order; others that steps were given stay where they are."""
        places: dict[Place | _Scratch, Place] = {Given(old): Given(new) for new, (old, _) in enumerate(order)}
        for position, entry in enumerate(self.given):
            if Given(position) not in places:
                places[Given(position)] = self._address(entry.empty())
        scratch = self._address(aligned_bytes(self.scratch_bytes)) if self.scratch_bytes else 0
        steps = tuple(step._replace(arguments=_settled(step.arguments, places, scratch)) for step in self.steps)
        given = tuple(argument._replace(is_written=old in self.written) for old, argument in order)
        is_long = self.runs_sessions or len(steps) >= MANY_STEPS or any(entry.releases_lock for entry in self.entries)
        return Table(given, steps, self.caller, is_long, (*self.entries, *self.keeps, self.watch))

    def place(self, slot: int, of: DType) -> Place:
        """Where the content of a slot lies, whose elements are of this type."""
        root = self.roots.get(slot, slot)
        if root in self.positions:
            return Given(self.positions[root])
        if self.slots[slot] is None:
            return self.give(root, f"slot {root}", of, self.shape(root))
        if slot not in self.addresses:
            self.addresses[slot] = self._address(self.slots[slot])
        return self.addresses[slot]

    def shape(self, slot: int) -> tuple[int, ...]:
        """The extents of what is in a slot."""
        array = self.slots[slot]
        return concrete_shape(self.types[slot].shape, self.symbols) if array is None else array.shape

    def size(self, slot: int, of: DType) -> int:
        """How many bytes that has."""
        return prod(self.shape(slot)) * of.itemsize

    def _view(self, result: int, source: int, shape: tuple[int, ...]) -> None:
        self.roots[result] = self.roots.get(source, source)
        if self.slots[source] is not None:
            self.slots[result] = self.slots[source].reshape(shape)

    def _places(self, step: PlacesStep) -> None:
        (slot,), (result,) = step.inputs, step.outputs
        of = self.types[result].dtype
        extent = evaluate(step.extent, self.symbols)
        lookup = Lookup(self.size(result, of), of.itemsize, extent, self.watch.lookup(step.name, extent))
        source, target = self.place(slot, of), self._made(result, of)
        if isinstance(target, Given):
            self.written.add(target.position)
        self.steps.append(looking(step.name, self.caller, target, source, self.watch.lookups, lookup))

    def _region(self, number: int, step: RegionStep) -> None:
        """What the library allocates is in no slot yet: nothing behind it in the table may read that."""
        inputs = [self.place(slot, of.dtype) for slot, of in zip(step.inputs, step.input_types, strict=True)]
        outputs = [
            0 if slot in step.unsized else self._made(slot, of.dtype)
            for slot, of in zip(step.outputs, step.output_types, strict=True)
        ]
        self.written.update(place.position for place in outputs if isinstance(place, Given))
        shapes = {slot: self.shape(slot) for slot in (*step.inputs, *step.made)}
        call = SessionCall(step, shapes, self.symbols)
        told = self.watch.sessions, self.watch.session(number, call)
        self.steps.append(call.record.step(step.name, self.caller, (*inputs, *outputs), *told))
        self.runs_sessions = True

    def _kernel(self, step: KernelStep) -> None:
        entry, signature = native(step)
        self.entries.append(entry)
        shapes = [self.shape(slot) for slot in step.inputs] if signature.sizes else []
        places = [self._operand(step, position) for position in range(len(step.inputs))]
        if step.untold:
            empty = np.empty((*[self.symbols[name] for name in step.untold], 0), np.uint8)
            shapes.insert(step.told_at, empty.shape)
            places.insert(step.told_at, self._address(empty))
        sizes = bind(signature, shapes) if signature.sizes else {}
        results = [self._made(slot, of.dtype) for slot, of in zip(step.made, signature.outputs, strict=True)]
        places += [*results, *self._workspaces(signature, sizes)]
        for argument, place in zip(signature.arguments, places, strict=True):
            if argument.is_written and isinstance(place, Given):
                self.written.add(place.position)
        values = tuple(sizes[name] for name in signature.sizes)
        self.steps.append(TableStep(step.name, entry.library.addresses[ENTRY], tuple(places), values))

    def _operand(self, step: KernelStep, position: int) -> Place:
        """Where an operand lies: a copy of it where the step updates it although others need what it was."""
        behind_told = bool(step.untold) and position >= step.told_at
        slot, of = step.inputs[position], native(step)[1].inputs[position + behind_told].dtype
        place = self.place(slot, of)
        results = [result for result, at in step.stored if at == position]
        if position not in step.private:
            for result in results:
                self._view(result, slot, self.shape(slot))
            return place
        shape = self.shape(slot)
        root = results[0] if results else -1 - len(self.given)  # which is no slot
        target = self.give(root, step.name, of, shape, is_made=True)
        self.copy(step.name, target, place, prod(shape) * of.itemsize)
        return target

    def _made(self, slot: int, of: DType) -> Place:
        if slot in self.positions or self.slots[slot] is not None:
            return self.place(slot, of)
        return self.give(slot, f"slot {slot}", of, self.shape(slot), is_made=True)

    def _workspaces(self, signature: Signature, sizes: Mapping[str, int]) -> Iterator[Place]:
        offset = 0
        for wanted in signature.workspaces:
            yield cast("Place", _Scratch(offset))
            count = prod(evaluate(dim, sizes) for dim in wanted.shape)
            offset += -(-count * wanted.dtype.itemsize // ALIGNMENT) * ALIGNMENT
        self.scratch_bytes = max(self.scratch_bytes, offset)

    def _address(self, array: np.ndarray[Any, Any]) -> int:
        if not (array.flags.c_contiguous and array.flags.aligned):
            array = np.require(array, requirements=("C", "A"))
        self.keeps.append(array)
        return array.ctypes.data


def native(step: KernelStep) -> tuple[CpuEntry, Signature]:
    """The machine code of a kernel of ours, and how it is called."""
    kernel = cast("NativeKernel", step.kernel)
    return cast("CpuEntry", kernel.entry), kernel.signature


def _settled(
    arguments: Sequence[Place | _Scratch], places: Mapping[Place | _Scratch, Place], scratch: int
) -> tuple[Place, ...]:
    return tuple(
        scratch + place.offset if isinstance(place, _Scratch) else places.get(place, place) for place in arguments
    )
