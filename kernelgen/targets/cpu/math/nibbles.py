"""The low four bits of integers as floats: a table of 16 floats that one instruction looks up in newer processors.

It takes the low bits of each index, so that neither are the others cleared nor is the integer converted: one instruction in
place of three, as the index is wide already where the whole integer becomes a float too.
"""

from __future__ import annotations

from kernelgen.targets.cpu.math.register_tables import looked_up
from kernelgen.targets.cpu.text.values import Value

NUMBERS = 16


def low_as_float(whole: Value) -> Value:
    """``whole % 16`` of integers without a sign."""
    if whole.lanes != NUMBERS or not whole.function.module.host.looks_up(NUMBERS):
        return (whole & (NUMBERS - 1)).convert("uitofp", "float")
    return looked_up(whole.convert("zext", "i32"), range(NUMBERS))
