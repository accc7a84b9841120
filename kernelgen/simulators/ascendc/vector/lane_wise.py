"""Vector instructions from lane to lane: arithmetic, casts, copies, fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from kernelgen.simulators.ascendc.state.instruction import Instruction, Operand, Work
from kernelgen.simulators.ascendc.time.instruction_cost import vector_cycles
from kernelgen.simulators.ascendc.vector import arithmetic
from kernelgen.simulators.ascendc.vector.checks import demand_types, read_blocks, scalar_of
from kernelgen.simulators.ascendc.vector.lanes import Lane, Strides, lanes_of, strides_of, touches
from kernelgen.simulators.ascendc.vector.rounding import cast


def plan_binary(instruction: Instruction) -> Work:
    """dst = first op second."""
    dst, first, second = (instruction.operand(name) for name in ("dst", "first", "second"))
    demand_types(instruction, dst, first, second)
    operation = arithmetic.BINARY[instruction.call.operation]
    names = ("dst", "first", "second")
    return _lane_work(instruction, dict(zip(names, (dst, first, second), strict=True)), operation)


def plan_unary(instruction: Instruction) -> Work:
    """dst = op src."""
    operands = {name: instruction.operand(name) for name in ("dst", "src")}
    demand_types(instruction, *operands.values())
    return _lane_work(instruction, operands, arithmetic.UNARY[instruction.call.operation])


def plan_scalar(instruction: Instruction) -> Work:
    """dst = src op scalar; the scalar is rounded to the type of the tensor."""
    operands = {name: instruction.operand(name) for name in ("dst", "src")}
    demand_types(instruction, *operands.values())
    operation, scalar = arithmetic.SCALAR[instruction.call.operation], scalar_of(instruction, operands["src"])
    return _lane_work(instruction, operands, lambda values: operation(values, scalar))


def plan_cast(instruction: Instruction) -> Work:
    """dst = src in another type, by a rounding mode that the pair of types has."""
    operands = {name: instruction.operand(name) for name in ("dst", "src")}
    mode, to = instruction.text("mode"), operands["dst"].dtype
    modes = instruction.machine.casts.get((operands["src"].dtype, to), frozenset())
    known = ", ".join(sorted(modes)) or "nothing"
    instruction.demand(
        mode in modes, "bad-dtype", f"cast from {operands['src'].dtype.name} to {to.name} by {mode}; there is {known}"
    )
    return _lane_work(instruction, operands, lambda values: cast(values, to, mode))


def plan_copy(instruction: Instruction) -> Work:
    """dst = src, through the vector unit."""
    operands = {name: instruction.operand(name) for name in ("dst", "src")}
    demand_types(instruction, *operands.values())
    return _lane_work(instruction, operands, np.copy)


def plan_duplicate(instruction: Instruction) -> Work:
    """dst = scalar in every lane."""
    dst = instruction.operand("dst")
    instruction.takes("Duplicate", dst.dtype)
    lanes, strides = lanes_of(instruction, [dst]), Strides()
    if instruction.form.variant == "repeat":
        block = instruction.within("the block stride of dst", instruction.integer("dst_block"), 1, 255)
        strides = Strides(
            block, instruction.within("the repeat stride of dst", instruction.integer("dst_repeat"), 0, 255)
        )
    value = scalar_of(instruction, dst)
    shape = (lanes.repeats, len(lanes.mask)) if not lanes.in_row else (len(lanes.mask),)
    view = cache(lambda: lanes.view(dst, strides))

    def run() -> None:
        lanes.put(view(), np.full(shape, value, dst.dtype.numpy))

    cycles = vector_cycles(instruction.machine, "Duplicate", dst.dtype, lanes.machine_repeats(dst.itemsize))
    return Work(touches(instruction, lanes, Lane(dst, strides), ()), run, cycles)


def _lane_work(instruction: Instruction, operands: Mapping[str, Operand], operation: Callable[..., np.ndarray]) -> Work:
    """An operation of lane to lane; the operand named dst is written, the others are read in order."""
    lanes = lanes_of(instruction, list(operands.values()))
    strides = strides_of(instruction, tuple(operands))
    laid = {name: Lane(operand, strides[name]) for name, operand in operands.items()}
    dst = laid.pop("dst")
    sources = list(laid.values())
    views = cache(lambda: [lanes.view(one.operand, one.strides) for one in (dst, *sources)])  # when it runs, and once

    def run() -> None:
        target, *given = views()
        with np.errstate(all="ignore"):
            lanes.put(target, operation(*map(lanes.values, given)))

    widest = max((dst.operand, *(one.operand for one in sources)), key=lambda one: one.itemsize)
    repeats = lanes.machine_repeats(widest.itemsize)
    cycles = vector_cycles(
        instruction.machine, instruction.call.operation, widest.dtype, repeats, read_blocks(lanes, sources)
    )
    return Work(touches(instruction, lanes, dst, sources), run, cycles)


PLANS: Mapping[str, Callable[[Instruction], Work]] = {
    "binary": plan_binary,
    "unary": plan_unary,
    "scalar": plan_scalar,
    "cast": plan_cast,
    "copy": plan_copy,
    "duplicate": plan_duplicate,
}
"""Group of a form -> how its calls are planned."""
