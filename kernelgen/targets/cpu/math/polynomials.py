"""What functions of floats are made of, on any number of lanes: polynomials, bounds, remainders by ln 2, powers of two."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.targets.cpu.text.values import Value

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
LN2_HIGH = 0.693359375  # 10 bits, so that n * LN2_HIGH is exact
LN2_LOW = -2.12194440e-4
SIGNIFICAND_BITS = 23
ROUNDER = 1.5 * 2.0**23  # adding it rounds a small float to an integer, which then stands in the low bits


def polynomial(x: Value, terms: Sequence[float]) -> Value:
    """``terms[0] + terms[1] x + ...`` by Horner's rule."""
    total = x.like(terms[-1])
    for term in reversed(terms[:-1]):
        total = total.fma(x, term)
    return total


def polynomial_by_pairs(x: Value, square: Value, terms: Sequence[float]) -> Value:
    """The polynomial of ``terms`` in ``x`` as one of pairs of them in its ``square``: half as long a wait, no instruction more.

    Source: Estrin, "Organization of computer systems: the fixed plus variable structure computer", 1960.
    """
    pairs = [polynomial(x, terms[start : start + 2]) for start in range(0, len(terms), 2)]
    total = pairs.pop()
    while pairs:
        total = total.fma(square, pairs.pop())
    return total


def clamped(x: Value, low: float, high: float) -> Value:
    """``x`` within the bounds ``low`` and ``high``; NaN stays NaN."""
    return at_least(at_most(x, high), low)


def at_most(x: Value, high: float) -> Value:
    """``x`` where it is not above ``high``; NaN stays NaN."""
    return x.compare("ogt", high).select(x.like(high), x)


def at_least(x: Value, low: float) -> Value:
    """``x`` where it is not below ``low``; NaN stays NaN."""
    return x.compare("olt", low).select(x.like(low), x)


def scales_in_one_step(x: Value) -> bool:
    """Whether the processor multiplies these lanes by a power of two in one instruction, over- and underflow included."""
    return x.function.module.host.has_scaling and x.lanes in (4, 8, 16) and x.kind == "float"


def scaled(x: Value, exponent: Value) -> Value:
    """``x * 2**exponent`` for a whole float exponent (AVX-512's scalef)."""
    mask, every = ("i16", -1) if x.lanes == 16 else ("i8", -1)
    name, rounding = f"llvm.x86.avx512.mask.scalef.ps.{32 * x.lanes}", ", i32 4" if x.lanes == 16 else ""
    signature = f"{x.type}, {x.type}, {x.type}, {mask}" + (", i32" if rounding else "")
    callee = x.function.module.declare(name, x.type, signature)
    operands = f"{x.typed}, {exponent.typed}, {x.typed}, {mask} {every}{rounding}"
    return Value(x.function, x.function.assign(f"call {x.type} {callee}({operands})"), x.kind, x.lanes)
