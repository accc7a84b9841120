"""Vector instructions that move elements to other lanes: Brcb, Gather, Transpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.ascendc.instructions import GATHER, TRANSPOSE
from kernelgen.ascendc.types import BLOCK, REPEAT, UB
from kernelgen.simulators.ascendc.state.byte_regions import typed
from kernelgen.simulators.ascendc.state.instruction import Instruction, Work
from kernelgen.simulators.ascendc.time.instruction_cost import vector_cycles
from kernelgen.simulators.ascendc.vector.checks import demand_apart, demand_types
from kernelgen.simulators.ascendc.vector.lanes import Lane, Lanes, Strides, touches
from kernelgen.tensor.dtypes import UINT32


def plan_brcb(instruction: Instruction) -> Work:
    """Each repeat takes eight elements and fills eight blocks, one with each."""
    dst, src = instruction.operand("dst"), instruction.operand("src")
    demand_types(instruction, dst, src)
    repeats = instruction.within("the number of repeats", instruction.integer("repeats"), 1, 254)
    block, repeat = instruction.fields("strides", "dst_block", "dst_repeat")
    strides = Strides(instruction.within("the block stride of dst", block, 1, 255), repeat)
    lanes = Lanes(repeats, np.ones(8 * BLOCK // dst.itemsize, np.bool_), in_row=False)
    instruction.lies_in(src, UB)
    instruction.aligned(src)
    read = instruction.row(src, 8 * repeats)

    def run() -> None:
        values = typed(src.memory.data, src.dtype.numpy, src.start, (), 8 * repeats)
        lanes.write(dst, strides, np.repeat(values, BLOCK // dst.itemsize))

    found = touches(instruction, lanes, Lane(dst, strides), ())
    demand_apart(instruction, read, found)
    return Work((read, *found), run, vector_cycles(instruction.machine, "Brcb", dst.dtype, repeats))


def plan_gather(instruction: Instruction) -> Work:
    """dst[i] = src at byte base + offsets[i]; any element of src's tensor may be read."""
    dst, src, offsets = (instruction.operand(name) for name in ("dst", "src", "offsets"))
    demand_types(instruction, dst, src)
    instruction.demand(offsets.dtype is UINT32, "bad-dtype", f"offsets are uint32, not {offsets.dtype.name}")
    count, base = instruction.integer("count"), instruction.integer("base")
    instruction.demand(count > 0, "bad-parameter", f"count is {count}")
    for operand in (dst, src, offsets):
        instruction.lies_in(operand, UB)
        instruction.aligned(operand)
    size = src.high - src.start
    found = (
        instruction.row(src, size // src.itemsize),
        instruction.row(offsets, count),
        instruction.row(dst, count, write=True),
    )
    demand_apart(instruction, found[-1], found[:2])

    def run() -> None:
        at = typed(offsets.memory.data, np.dtype(np.uint32), offsets.start, (), count).astype(np.int64) + base
        inside = bool((at + src.itemsize <= size).all())
        instruction.demand(inside, "out-of-bounds", f"an offset of {int(at.max())} bytes, {src.name} has {size}")
        instruction.demand(bool((at % src.itemsize == 0).all()), "misaligned", "an offset splits an element")
        values = typed(src.memory.data, src.dtype.numpy, src.start, (), size // src.itemsize)
        typed(dst.memory.data, dst.dtype.numpy, dst.start, (), count)[...] = values[at // src.itemsize]

    repeats = -(-count * dst.itemsize // REPEAT)
    return Work(found, run, vector_cycles(instruction.machine, GATHER, dst.dtype, repeats))


def plan_transpose(instruction: Instruction) -> Work:
    """A 16 x 16 matrix of 16-bit elements, transposed; source and destination may be the same."""
    dst, src = instruction.operand("dst"), instruction.operand("src")
    demand_types(instruction, dst, src)
    for operand in (dst, src):
        instruction.lies_in(operand, UB)
        instruction.aligned(operand)
    found = (instruction.row(src, 256), instruction.row(dst, 256, write=True))
    instruction.demand(
        dst.start == src.start or abs(dst.start - src.start) >= 512, "overlap", f"{src.name} and {dst.name} overlap"
    )

    def run() -> None:
        matrix = typed(src.memory.data, src.dtype.numpy, src.start, ((16, BLOCK),), 16).T.copy()
        typed(dst.memory.data, dst.dtype.numpy, dst.start, ((16, BLOCK),), 16)[...] = matrix

    return Work(found, run, vector_cycles(instruction.machine, TRANSPOSE, dst.dtype, 2))


PLANS: Mapping[str, Callable[[Instruction], Work]] = {
    "brcb": plan_brcb,
    "gather": plan_gather,
    "transpose": plan_transpose,
}
"""Group of a form -> how its calls are planned."""
