"""Compare and Select: bits in a row, 256 bytes of lanes after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.ascendc.instructions import SELECT
from kernelgen.ascendc.types import REPEAT, UB
from kernelgen.simulators.ascendc.state.instruction import Instruction, Work
from kernelgen.simulators.ascendc.time.instruction_cost import vector_cycles
from kernelgen.simulators.ascendc.vector import arithmetic
from kernelgen.simulators.ascendc.vector.checks import (
    bytes_of,
    demand_apart,
    demand_types,
    read_blocks,
    scalar_of,
    source_touches,
)
from kernelgen.simulators.ascendc.vector.lanes import Lane, lanes_of, strides_of, touches
from kernelgen.tensor.dtypes import INT32, UINT8


def plan_compare(instruction: Instruction) -> Work:
    """One bit a lane in dst, repeats in a row: dst's strides and a mask have no effect, so all lanes must take part."""
    scalar = instruction.call.operation == "CompareScalar"
    names = ("first",) if scalar else ("first", "second")
    dst, sources = instruction.operand("dst"), {name: instruction.operand(name) for name in names}
    mode, first = instruction.text("mode"), sources["first"]
    demand_types(instruction, *sources.values())
    instruction.demand(dst.dtype is UINT8, "bad-dtype", f"the bits go to uint8, not to {dst.dtype.name}")
    only_equal = first.dtype is INT32 and instruction.machine.architecture != 3510
    instruction.demand(not only_equal or mode == "EQ", "bad-dtype", f"int32 compares by EQ only, not by {mode}")
    instruction.demand(mode in arithmetic.COMPARE, "bad-parameter", f"no comparison {mode}")
    lanes = lanes_of(instruction, list(sources.values()))
    whole = lanes.full and len(lanes.mask) * first.itemsize % REPEAT == 0
    instruction.demand(whole, "bad-mask", f"{int(lanes.mask.sum())} lanes; whole repeats of 256 bytes are needed")
    strides = strides_of(instruction, names if not scalar else ("src",))
    laid = [Lane(operand, one) for operand, one in zip(sources.values(), strides.values(), strict=True)]
    bits = lanes.repeats * len(lanes.mask)
    other = scalar_of(instruction, first) if scalar else None

    def run() -> None:
        values = [lanes.read(lane.operand, lane.strides) for lane in laid]
        chosen = arithmetic.COMPARE[mode](values[0], values[1] if other is None else np.asarray(other))
        bytes_of(dst, bits // 8)[...] = np.packbits(chosen.ravel(), bitorder="little")

    found = source_touches(instruction, lanes, laid)
    cycles = vector_cycles(
        instruction.machine, "Compare", first.dtype, lanes.machine_repeats(first.itemsize), read_blocks(lanes, laid)
    )
    instruction.lies_in(dst, UB)
    instruction.aligned(dst)
    written = instruction.row(dst, bits // 8, write=True)
    demand_apart(instruction, written, found)
    return Work((*found, written), run, cycles)


def plan_select(instruction: Instruction) -> Work:
    """dst = first where the bit is 1, else second or the scalar; bits lie in a row, 256 / itemsize for each repeat."""
    scalar = "scalar" in instruction.given
    names = ("dst", "first") if scalar else ("dst", "first", "second")
    operands = {name: instruction.operand(name) for name in names}
    chosen, mode = instruction.operand("chosen"), instruction.text("mode")
    demand_types(instruction, *operands.values())
    expected = "VSEL_TENSOR_SCALAR_MODE" if scalar else "VSEL_TENSOR_TENSOR_MODE"
    instruction.demand(mode == expected, "not-modelled", f"mode {mode}; {expected} is")
    instruction.demand(chosen.dtype is UINT8, "bad-dtype", f"the bits come from uint8, not from {chosen.dtype.name}")
    instruction.lies_in(chosen, UB)
    instruction.aligned(chosen)
    lanes = lanes_of(instruction, list(operands.values()))
    width = len(lanes.mask) if lanes.in_row else REPEAT // operands["dst"].itemsize
    size = -(-lanes.repeats * width // 8)
    value = scalar_of(instruction, operands["first"]) if scalar else None
    strides = strides_of(instruction, ("dst", "first", "second"))
    laid = {name: Lane(operand, strides[name]) for name, operand in operands.items()}

    def run() -> None:
        bits = np.unpackbits(bytes_of(chosen, size), bitorder="little")[: lanes.repeats * width].astype(np.bool_)
        first = lanes.read(laid["first"].operand, laid["first"].strides)
        second = value if value is not None else lanes.read(laid["second"].operand, laid["second"].strides)
        lanes.write(operands["dst"], laid["dst"].strides, np.where(bits.reshape(first.shape), first, second))

    sources = [lane for name, lane in laid.items() if name != "dst"]
    found = touches(instruction, lanes, laid["dst"], sources)
    read = instruction.row(chosen, size)
    demand_apart(instruction, found[-1], [read])
    repeats = lanes.machine_repeats(operands["dst"].itemsize)
    cycles = vector_cycles(instruction.machine, SELECT, operands["dst"].dtype, repeats, read_blocks(lanes, sources))
    return Work((read, *found), run, cycles)


PLANS: Mapping[str, Callable[[Instruction], Work]] = {"compare": plan_compare, "select": plan_select}
"""Group of a form -> how its calls are planned."""
