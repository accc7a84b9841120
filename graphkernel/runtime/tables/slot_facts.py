"""What lies in the slots of a program."""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.steps.program import Program
from graphkernel.runtime.steps.steps import KernelStep, NumpyStep, ViewStep
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.types import TensorType


class SlotFacts(NamedTuple):
    """Of the slots of a program: types, and the number of the last step that reads each; that of an output is beyond all."""

    types: Mapping[int, TensorType]
    last_read: Mapping[int, int]


def slot_facts(program: Program) -> SlotFacts:
    """What binding steps needs to know of slots."""
    last_read = {slot: number for number, step in enumerate(program.steps) for slot in step.inputs}
    for segment in program.segments:
        last_read.update((slot, max(segment.first, last_read.get(slot, 0))) for _, slot, _ in segment.reads)
    last_read.update((output.slot, len(program.steps)) for output in program.outputs)
    return SlotFacts(_slot_types(program), last_read)


def _slot_types(program: Program) -> Mapping[int, TensorType]:
    """The type of every slot that a program tells one of: of inputs, results, and of what steps write."""
    found = {named.slot: named.type for named in (*program.inputs, *program.results)}
    found.update((buffer.slot, buffer.type) for buffer in program.buffers)
    for step in program.steps:
        if isinstance(step, ViewStep):
            if (source := found.get(step.inputs[0])) is not None:
                found[step.outputs[0]] = TensorType(step.shape, source.dtype)
        elif isinstance(step, RegionStep):
            found.update(zip(step.outputs, step.output_types, strict=True))
        elif isinstance(step, NumpyStep):
            found.update(zip(step.outputs, step.node.types, strict=True))
        elif isinstance(step, KernelStep):
            found.update((slot, found[step.inputs[at]]) for slot, at in step.stored if step.inputs[at] in found)
    return found
