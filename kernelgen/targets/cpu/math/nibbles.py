"""The low four bits of integers as floats: a table of 16 floats that one instruction looks up in newer processors.

It takes the low bits of each index, so that neither are the others cleared nor is the integer converted: one instruction in
place of three, as the index is wide already where the whole integer becomes a float too.
"""

from __future__ import annotations

from kernelgen.targets.cpu.text.values import Value, constant

LANES = 16
"""Of the vector that holds as many floats as four bits have values."""

LOOK_UP = "llvm.x86.avx512.permvar.sf.512"


def low_as_float(whole: Value) -> Value:
    """``whole % 16`` of integers without a sign."""
    if whole.lanes != LANES or not whole.function.module.host.looks_up(LANES):
        return (whole & (LANES - 1)).convert("uitofp", "float")
    numbers = [constant(whole.function, number, "float").typed for number in range(LANES)]
    table = f"<{LANES} x float> <{', '.join(numbers)}>"
    index = whole.convert("zext", "i32")
    callee = whole.function.module.declare(LOOK_UP, f"<{LANES} x float>", f"<{LANES} x float>, {index.type}")
    found = whole.function.assign(f"call <{LANES} x float> {callee}({table}, {index.typed})")
    return Value(whole.function, found, "float", LANES)
