"""Tables of 8 or 16 floats in a vector register, of which one instruction takes one for each lane by the low bits of an index.

Vector libraries choose the coefficients of short polynomials so, where one for all arguments would be long. What uses a table
always computes on whole registers: fewer lanes are filled up, so that a float has the same bits wherever it lies.

Source: Tang, "Table-driven implementation of the exponential function in IEEE floating-point arithmetic", ACM TOMS 15(2), 1989.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelgen.targets.cpu.text.values import Value, constant

LOOK_UP = {8: "llvm.x86.avx2.permps", 16: "llvm.x86.avx512.permvar.sf.512"}
"""By the floats of the register that holds a table."""


def serve(x: Value, *lengths: int) -> bool:
    """Whether functions of these floats are computed with tables, of which there are some of the ``lengths``: where whole
    registers are what vectors are anyway.
    """
    host = x.function.module.host
    return host.keeps_tables and host.vector_floats in lengths


def looked_up(index: Value, table: Sequence[float]) -> Value:
    """``table[index % n]`` for ``n`` integers, as many as the ``table`` has floats."""
    lanes = len(table)
    numbers = [constant(index.function, number, "float").typed for number in table]
    floats = Value(index.function, f"<{', '.join(numbers)}>", "float", lanes)
    callee = index.function.module.declare(LOOK_UP[lanes], floats.type, f"{floats.type}, {index.type}")
    found = index.function.assign(f"call {floats.type} {callee}({floats.typed}, {index.typed})")
    return Value(index.function, found, "float", lanes)


def on_whole_registers(compute: Callable[[Value], Value], x: Value) -> Value:
    """``compute`` of as many lanes as registers have, which the lanes of ``x`` are repeated to fill, or of which it fills
    several; as many are left of the result.
    """
    lanes = x.function.module.host.vector_floats
    if x.lanes > lanes:
        low, high = (on_whole_registers(compute, half) for half in x.halves())
        return low.shuffle(high, list(range(x.lanes)))
    filled = x.splat(lanes) if x.lanes == 1 else x.shuffle(x, [lane % x.lanes for lane in range(lanes)])
    result = compute(filled)
    while result.lanes > x.lanes:
        result, _ = result.halves()
    return result
