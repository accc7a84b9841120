"""What vector instructions check and read in the same way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.ascendc.types import UB
from kernelgen.simulators.ascendc.state.instruction import Instruction, Operand, Touch
from kernelgen.simulators.ascendc.vector.lanes import Lane, Lanes


def read_blocks(lanes: Lanes, sources: Sequence[Lane]) -> list[np.ndarray]:
    """The blocks of each source, for conflicts of banks."""
    return [lanes.read_blocks(lane.operand, lane.strides) for lane in sources]


def demand_types(instruction: Instruction, *operands: Operand) -> None:
    """All operands have one type, which the machine computes in."""
    first = operands[0]
    for operand in operands[1:]:
        same = operand.dtype is first.dtype
        instruction.demand(
            same, "bad-dtype", f"{first.name} is {first.dtype.name}, {operand.name} {operand.dtype.name}"
        )
    instruction.takes(instruction.call.operation, first.dtype)


def scalar_of(instruction: Instruction, like: Operand) -> np.generic:
    """The scalar argument in the type of a tensor. Raises a finding for what is no number."""
    value = instruction.given["scalar"]
    if not isinstance(value, int | float):
        raise instruction.fail("bad-parameter", "the scalar is no number")
    if like.dtype.is_integer:
        instruction.demand(isinstance(value, int), "bad-dtype", f"the scalar {value} for a tensor of {like.dtype.name}")
    with np.errstate(all="ignore"):
        return like.dtype.numpy.type(np.asarray(value).astype(like.dtype.numpy))


def source_touches(instruction: Instruction, lanes: Lanes, sources: Sequence[Lane]) -> tuple[Touch, ...]:
    """What is read of the sources; checks memory, alignment and bounds."""
    for lane in sources:
        instruction.lies_in(lane.operand, UB)
        instruction.aligned(lane.operand)
    return tuple(
        instruction.touch(lane.operand, where)
        for lane in sources
        for where in lanes.regions(lane.operand, lane.strides)
    )


def demand_apart(instruction: Instruction, written: Touch, others: Sequence[Touch]) -> None:
    """The written bytes and the others must be disjoint as intervals."""
    for other in others:
        apart = (
            other.memory is not written.memory
            or other.region.stop <= written.region.start
            or written.region.stop <= other.region.start
        )
        instruction.demand(apart, "overlap", "source and destination overlap")


def bytes_of(operand: Operand, count: int) -> np.ndarray:
    """The first bytes of an operand, as a view."""
    return operand.memory.data[operand.start : operand.start + count]
