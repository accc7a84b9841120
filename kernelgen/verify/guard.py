"""A kernel whose arguments lie against pages that nobody may touch, at both ends and at every shift in turn.

It has to give what it gives on ordinary arrays. A read or write that leaves an array, or an access that claims more
alignment than the array has, faults: the process that runs this must be one that may die.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.kernel import Kernel
from kernelgen.native.signature import Signature
from kernelgen.verify.compare import compare
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
    """How many placements ran, and what was wrong in the last of them; empty when nothing was."""
    arrays, _, symbols = kernel.arguments(kernel.call_inputs(inputs), outputs)
    expected = [array.copy() for array in arrays]
    kernel.entry(tuple(expected), symbols)
    names = [buffer.name for buffer in kernel.nest.buffers]
    fenced = [Fenced(name, array) for name, array in zip(names, arrays, strict=True)]
    found = placements(arrays)
    for number, placement in enumerate(found, 1):
        fault = _fault(kernel, symbols, fenced, placement, expected, diary)
        if fault:
            return number, f"{fault}; arrays at the {placement}"
    return len(found), ""


def _fault(
    kernel: Kernel,
    symbols: tuple[int, ...],
    fenced: Sequence[Fenced],
    placement: Placement,
    expected: Sequence[Array],
    diary: Diary,
) -> str:
    """What is wrong with a run in one placement; empty when nothing is."""
    placed = [each.place(placement) for each in fenced]
    diary.note(placement, fenced)
    kernel.entry(tuple(placed), symbols)
    spoiled = [each.name for each in fenced if each.is_spoiled]
    if spoiled:
        return f"something was written beside {', '.join(spoiled)}"
    return _difference(kernel.desc, kernel.signature, placed, expected)


def _difference(desc: KernelDesc, called: Signature, found: Sequence[Array], expected: Sequence[Array]) -> str:
    """Outputs agree within their tolerance, inputs are as they were but for those that are updated."""
    inputs, outputs = len(called.inputs), range(len(called.inputs), len(called.inputs) + len(called.outputs))
    for place in range(inputs):
        if place not in called.updated_inputs and not _same(found[place], expected[place]):
            return f"input {called.inputs[place].name} was written"
    places = [k for k in (*outputs, *called.updated_inputs) if not _same(found[k], expected[k])]
    names = [(*called.inputs, *called.outputs)[k].name for k in places]
    return compare(desc, names, [found[k] for k in places], [expected[k] for k in places]).fault


def _same(left: Array, right: Array) -> bool:
    """Whether all bits are, compared in the largest integers that the arrays are made of."""
    word = next(size for size in (8, 4, 2, 1) if left.nbytes % size == 0)
    return np.array_equal(left.reshape(-1).view(f"u{word}"), right.reshape(-1).view(f"u{word}"))
