"""WholeReduce and BlockReduce: one result a repeat, or one a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.ascendc.types import REPEAT, UB
from kernelgen.simulators.ascendc.state.byte_regions import region, typed
from kernelgen.simulators.ascendc.state.instruction import Instruction, Operand, Work
from kernelgen.simulators.ascendc.time.instruction_cost import vector_cycles
from kernelgen.simulators.ascendc.vector import arithmetic
from kernelgen.simulators.ascendc.vector.checks import demand_apart, demand_types, source_touches
from kernelgen.simulators.ascendc.vector.lanes import Lane, Lanes, Strides, mask_of


def plan_whole_reduce(instruction: Instruction) -> Work:
    """One result a repeat; the destination's stride counts elements."""
    dst, src = instruction.operand("dst"), instruction.operand("src")
    if "order" in instruction.given:
        order = instruction.text("order")
        instruction.demand(order == "ORDER_ONLY_VALUE", "not-modelled", f"order {order}; ORDER_ONLY_VALUE is")
    lanes, lane = _reduced(instruction, dst, src)
    stride = instruction.within("the repeat stride of dst", instruction.integer("dst_repeat"), 1, 65535)
    instruction.aligned(dst, dst.itemsize)
    return _reduce_work(instruction, lanes, lane, dst, 1, stride * dst.itemsize)


def plan_block_reduce(instruction: Instruction) -> Work:
    """One result a block, eight a repeat; the destination's stride counts eight results."""
    dst, src = instruction.operand("dst"), instruction.operand("src")
    lanes, lane = _reduced(instruction, dst, src)
    instruction.demand(lanes.full, "not-modelled", "a mask; all lanes are")
    stride = instruction.within("the repeat stride of dst", instruction.integer("dst_repeat"), 1, 65535)
    instruction.aligned(dst, 8 * dst.itemsize)
    return _reduce_work(instruction, lanes, lane, dst, 8, stride * 8 * dst.itemsize)


def _reduced(instruction: Instruction, dst: Operand, src: Operand) -> tuple[Lanes, Lane]:
    """The lanes of a reduction's source, checked."""
    demand_types(instruction, dst, src)
    lanes = Lanes(
        instruction.within("the number of repeats", instruction.integer("repeats"), 1, 255),
        mask_of(instruction, REPEAT // src.itemsize),
        in_row=False,
    )
    block = instruction.within("the block stride of src", instruction.integer("src_block"), 0, 65535)
    repeat = instruction.within("the repeat stride of src", instruction.integer("src_repeat"), 0, 65535)
    for operand in (dst, src):
        instruction.lies_in(operand, UB)
    instruction.aligned(src)
    return lanes, Lane(src, Strides(block, repeat))


def _reduce_work(instruction: Instruction, lanes: Lanes, lane: Lane, dst: Operand, each: int, stride: int) -> Work:
    """Reduces ``1 / each`` of a repeat's lanes to each result."""
    where = region(dst.start, ((lanes.repeats, stride),), each * dst.itemsize)
    operation = instruction.call.operation

    def run() -> None:
        values = lanes.read(lane.operand, lane.strides).reshape(lanes.repeats, each, -1)
        with np.errstate(all="ignore"):
            reduced = arithmetic.reduce_lanes(operation, values, lanes.mask.reshape(each, -1))
        typed(dst.memory.data, dst.dtype.numpy, dst.start, ((lanes.repeats, stride),), each)[...] = reduced

    found = source_touches(instruction, lanes, [lane])
    written = instruction.touch(dst, where, write=True)
    demand_apart(instruction, written, found)
    cycles = vector_cycles(instruction.machine, operation, dst.dtype, lanes.repeats)
    return Work((*found, written), run, cycles)


PLANS: Mapping[str, Callable[[Instruction], Work]] = {"whole": plan_whole_reduce, "block": plan_block_reduce}
"""Group of a form -> how its calls are planned."""
