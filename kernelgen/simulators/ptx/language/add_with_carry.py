"""Sums of 32 bits with a carry, as sums of 64 bits: what the compiler writes for long integers.

madc.hi.cc.u32 d, a, b, c;      carry, d = high half of a * b + c + carry
add.cc, addc, mad.cc, madc      the same with other first terms; without .cc at the end the carry stays as it is
"""

from __future__ import annotations

from kernelgen.simulators.ptx.language.nodes import Immediate, Instruction, Operand, Register

REGISTERS = {"%carry": "u64", "%carry.sum": "u64", "%carry.term": "u64", "%carry.last": "u32"}
CARRY, SUM, TERM, LAST = map(Register, REGISTERS)
NARROW = ("u32", "s32", "b32")
LOW_HALF = Immediate(0xFFFFFFFF)
HALF, SIGN = Immediate(32), Immediate(63)


def has_carry(instruction: Instruction) -> bool:
    """Whether this is a sum of 32 bits that takes a carry or gives one."""
    first, *rest = instruction.opcode
    takes = first in ("addc", "subc", "madc")
    return bool(rest) and rest[-1] in NARROW and (takes or (first in ("add", "sub", "mad") and "cc" in rest))


def without_carry(given: Instruction) -> list[Instruction]:
    """Instructions without one that do the same; they use :data:`REGISTERS`."""
    first, *rest = given.opcode
    result, left, right, *last = given.operands
    steps: list[tuple[str, tuple[Operand, ...]]]
    if first.startswith("mad"):
        half = ("shr.u64", (SUM, SUM, HALF)) if "hi" in rest else ("and.b64", (SUM, SUM, LOW_HALF))
        steps = [("mul.wide.u32", (SUM, left, right)), half, ("mov.u32", (LAST, *last))]
    else:
        steps = [("mov.u32", (LAST, left)), ("cvt.u64.u32", (SUM, LAST)), ("mov.u32", (LAST, right))]
    combine, carried = ("sub.s64", SIGN) if first.startswith("sub") else ("add.s64", HALF)
    steps += [("cvt.u64.u32", (TERM, LAST)), (combine, (SUM, SUM, TERM))]
    if first.endswith("c"):
        steps.append((combine, (SUM, SUM, CARRY)))
    if "cc" in rest:
        steps.append(("shr.u64", (CARRY, SUM, carried)))
    steps.append(("cvt.u32.u64", (result, SUM)))
    return [Instruction(tuple(name.split(".")), operands, given.place, given.guard) for name, operands in steps]
