"""Tables of 16 floats in a vector register, of which one instruction takes one for each lane by the low bits of an index.

Vector libraries choose the coefficients of short polynomials so, where one for all arguments would be long. What uses a table
always computes on whole registers: fewer lanes are filled up, so that a float has the same bits wherever it lies.

Source: Tang, "Table-driven implementation of the exponential function in IEEE floating-point arithmetic", ACM TOMS 15(2), 1989.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelgen.targets.cpu.text.values import Value, constant

LANES = 16
"""Floats of the register that holds a table."""
LOOK_UP = "llvm.x86.avx512.permvar.sf.512"


def serve(x: Value) -> bool:
    """Whether functions of these floats are computed with tables: where whole registers are what vectors are anyway."""
    return x.function.module.host.keeps_tables


def looked_up(index: Value, table: Sequence[float]) -> Value:
    """``table[index % 16]`` for 16 integers."""
    numbers = [constant(index.function, number, "float").typed for number in table]
    floats = Value(index.function, f"<{', '.join(numbers)}>", "float", LANES)
    callee = index.function.module.declare(LOOK_UP, floats.type, f"{floats.type}, {index.type}")
    found = index.function.assign(f"call {floats.type} {callee}({floats.typed}, {index.typed})")
    return Value(index.function, found, "float", LANES)


def on_whole_registers(compute: Callable[[Value], Value], x: Value) -> Value:
    """``compute`` of 16 lanes, which the lanes of ``x`` are repeated to fill, or of which it fills several registers; as many
    are left of the result.
    """
    if x.lanes > LANES:
        low, high = (on_whole_registers(compute, half) for half in x.halves())
        return low.shuffle(high, list(range(x.lanes)))
    filled = x.splat(LANES) if x.lanes == 1 else x.shuffle(x, [lane % x.lanes for lane in range(LANES)])
    result = compute(filled)
    while result.lanes > x.lanes:
        result, _ = result.halves()
    return result
