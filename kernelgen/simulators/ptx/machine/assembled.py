"""What the assembler makes of an instruction: machine instructions by class, an estimate.

PTX is not what a device issues: constants and parameters are operands of other instructions, signs are flags of theirs,
64-bit integers take two, and a division is a reciprocal with some steps of Newton. The lengths of those sequences are
what the assembler writes for sm_90 where nothing special (denormals, infinities) happens.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.simulators.ptx.language.nodes import Instruction
from kernelgen.simulators.ptx.language.types import is_float, opcode_types, width_of
from kernelgen.simulators.ptx.state.counters import class_of

Sequence = Mapping[str, float]
FREE = ("mov", "cvta")
SIGNS = ("neg", "abs")
SATURATION = ("cvt", "sat", "f32", "f32")  # a flag of the instruction that gives the number

ROUNDED: Mapping[str, Sequence] = {
    "div": {"special": 1, "float": 6, "compare": 1, "control": 1},
    "rcp": {"special": 1, "float": 3, "integer": 1, "compare": 1, "control": 1},
    "sqrt": {"special": 1, "float": 5, "integer": 1, "compare": 1, "control": 1},
}
"""Correctly rounded functions of floats: the short way; the long one is behind the branch."""

DOUBLE: Sequence = {"special": 1, "double": 10, "integer": 3, "compare": 1, "control": 1}
SCALED: Sequence = {"special": 1, "float": 2, "compare": 1}
"""An approximation that keeps denormals: the operand is scaled, the result scaled back."""

DIVISION: Mapping[int, Sequence] = {
    32: {"special": 1, "convert": 2, "integer": 10, "compare": 3},
    64: {"special": 1, "convert": 2, "integer": 60, "compare": 8, "control": 3},
}
"""Integers over what is no constant."""

LONG_PRODUCT = 4
CONVERTED = 0.25
"""Integers that grow or shrink are often halves of a register pair."""

PACKED = 0.5
"""Two numbers are made halves by one instruction."""


def assembled(instruction: Instruction) -> Sequence:
    """Machine instructions of each class; empty for what costs none."""
    base, kinds = instruction.opcode[0], opcode_types(instruction.opcode)
    kind = kinds[-1] if kinds else ""
    if base in FREE or (base == "ld" and "param" in instruction.opcode) or (base in SIGNS and is_float(kind)):
        return {}
    if is_float(kind):
        return _of_floats(instruction, kinds)
    return _of_integers(instruction, kind)


def _of_floats(instruction: Instruction, kinds: tuple[str, ...]) -> Sequence:
    base, kind = instruction.opcode[0], kinds[-1]
    if base in ROUNDED and "rn" in instruction.opcode:
        return DOUBLE if kind == "f64" else ROUNDED[base]
    if base in ("ex2", "lg2", "rsqrt") and "ftz" not in instruction.opcode and kind == "f32":
        return SCALED
    if base == "cvt" and kind == "f32" and kinds[0] in ("f16", "bf16"):
        return {"convert": PACKED}
    if instruction.opcode == SATURATION:
        return {}
    return {class_of(instruction): 1}


def _of_integers(instruction: Instruction, kind: str) -> Sequence:
    base, name = instruction.opcode[0], class_of(instruction)
    if base == "cvt" and not any(map(is_float, opcode_types(instruction.opcode))):
        return {name: CONVERTED}
    width = width_of(kind) if kind and name in ("integer", "compare") else 32
    if base in ("div", "rem"):
        return DIVISION[max(width, 32)]
    if width < 64 or "wide" in instruction.opcode:
        return {name: 1}
    return {name: LONG_PRODUCT if base in ("mul", "mad") else 2}
