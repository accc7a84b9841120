"""A kernel whose arguments lie against pages that nobody may touch, at both ends and at every shift in turn.

It has to give what it gives on ordinary arrays. A read or write that leaves an array, or an access that claims more
alignment than the array has, faults: the process that runs this must be one that may die.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kernelgen.kernel import Kernel
from kernelgen.native.call import NativeKernel
from kernelgen.system.cached_property import cached_property
from kernelgen.verify.compare import difference, tolerances
from kernelgen.verify.guard_pages import Array, Fenced, Placement, placements
from kernelgen.verify.record import Record, Status
from kernelgen.verify.worker_diary import Diary


def guarded(record: Record, kernel: Kernel, inputs: Sequence[Array], outputs: Sequence[Array], diary: Diary) -> Record:
    """The record with the number of placements that ran, or a failure with the first that was wrong."""
    count, fault = between_fences(kernel, inputs, outputs, diary)
    if fault:
        return replace(record, status=Status.FAILED, reason="guard", message=fault)
    return replace(record, placements=count)


def between_fences(kernel: Kernel, inputs: Sequence[Array], outputs: Sequence[Array], diary: Diary) -> tuple[int, str]:
    """How many placements ran, and what was wrong in the last of them; empty when nothing was.

    What computes inputs of the ``kernel`` from constants among the description's ``inputs`` runs so too, before all calls with
    these ``outputs``; the ``diary`` is told of each placement.
    """
    calls = [_Call(kernel, kernel.call_inputs(inputs), outputs, tolerances(kernel.desc))]
    if kernel.preparation is not None:
        calls.insert(0, _Call(kernel.preparation, [inputs[place] for place in kernel.prepares]))
    count = 0
    for call in calls:
        for placement in call.placements:
            count += 1
            fault = call.fault(placement, diary)
            if fault:
                return count, f"{fault}; arrays at the {placement}"
    return count, ""


@dataclass(frozen=True)
class _Call:
    """A kernel with what it is called with; ``allowed`` says how far its results may be from those on ordinary arrays."""

    kernel: NativeKernel
    inputs: Sequence[Array]
    outputs: Sequence[Array] | None = None
    allowed: Mapping[str, float] = field(default_factory=dict[str, float])

    @cached_property
    def arguments(self) -> tuple[tuple[Array, ...], tuple[int, ...]]:
        """The arrays of an entry, and the sizes of symbols."""
        arrays, _, symbols = self.kernel.arguments(self.inputs, self.outputs)
        return arrays, symbols

    @cached_property
    def expected(self) -> tuple[Array, ...]:
        """What ordinary arrays hold afterwards."""
        arrays, symbols = self.arguments
        found = tuple(array.copy() for array in arrays)
        self.kernel.entry(found, symbols)
        return found

    @cached_property
    def fenced(self) -> Sequence[Fenced]:
        """Room for each array."""
        called, arrays = self.kernel.signature, self.arguments[0]
        names = [each.name for each in (*called.inputs, *called.outputs, *called.workspaces)]
        return [Fenced(name, array) for name, array in zip(names, arrays, strict=True)]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """All that differ."""
        return placements(self.arguments[0])

    def fault(self, placement: Placement, diary: Diary) -> str:
        """What is wrong with a run in one ``placement``, of which the ``diary`` is told; empty when nothing is."""
        expected, placed = self.expected, [each.place(placement) for each in self.fenced]
        diary.note(placement, self.fenced)
        self.kernel.entry(tuple(placed), self.arguments[1])
        spoiled = [each.name for each in self.fenced if each.is_spoiled]
        if spoiled:
            return f"something was written beside {', '.join(spoiled)}"
        return self._difference(placed, expected)

    def _difference(self, found: Sequence[Array], expected: Sequence[Array]) -> str:
        """Outputs agree within their tolerance, inputs are as they were but for those that are updated."""
        called = self.kernel.signature
        inputs, tensors = len(called.inputs), (*called.inputs, *called.outputs)
        differ = [place for place in range(len(tensors)) if not _same(found[place], expected[place])]
        for place in differ:
            name = tensors[place].name
            if place < inputs and place not in called.updated_inputs:
                return f"input {name} was written"
            fault = difference(found[place], expected[place], self.allowed.get(name, 0.0)).fault
            if fault:
                return f"{name}: {fault}"
        return ""


def _same(left: Array, right: Array) -> bool:
    """Whether all bits are, compared in the largest integers that the arrays are made of."""
    word = next(size for size in (8, 4, 2, 1) if left.nbytes % size == 0)
    return np.array_equal(left.reshape(-1).view(f"u{word}"), right.reshape(-1).view(f"u{word}"))
