"""exp and its family for float, on any number of lanes. Errors are at most 2 units in the last place."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.targets import coefficients
from kernelgen.targets.cpu.text.values import Value

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693359375  # 10 bits, so that n * LN2_HIGH is exact
LN2_LOW = -2.12194440e-4
ROUNDER = 1.5 * 2.0**23  # adding it rounds a small float to an integer, which then stands in the low bits


def polynomial(x: Value, terms: Sequence[float]) -> Value:
    """``terms[0] + terms[1] x + ...`` by Horner's rule."""
    total = x.like(terms[-1])
    for term in reversed(terms[:-1]):
        total = total.fma(x, term)
    return total


def clamped(x: Value, low: float, high: float) -> Value:
    """``x`` within the bounds ``low`` and ``high``; NaN stays NaN."""
    x = x.compare("ogt", high).select(x.like(high), x)
    return x.compare("olt", low).select(x.like(low), x)


def exp(x: Value, halvings: int = 0) -> Value:
    """``e**x / 2**halvings``: e^r of the remainder r of x by ln 2, times 2^n in two steps so that neither overflows early."""
    x = clamped(x, -105.0, 90.0)
    shifted, r = _reduced(x)
    small = _exp_of_remainder(r)
    if scales_in_one_step(x):
        return scaled(small, _whole(shifted) - halvings)
    n = _integer(shifted) - halvings
    half = n.binary("ashr", 1)
    return small * _power_of_two(half) * _power_of_two(n - half)


def expm1(x: Value) -> Value:
    """``e**x - 1`` as ``2^n (e^r - 1) + (2^n - 1)``: nothing cancels near 0. Half of it is built, for n up to 128."""
    is_zero = x.compare("oeq", 0.0)
    bounded = clamped(x, -30.0, 90.0)
    shifted, r = _reduced(bounded)
    minus_one = (r * r).fma(polynomial(r, coefficients.EXPM1), r)
    half_scale = _power_of_two(_integer(shifted) - 1)
    result = minus_one.fma(half_scale, half_scale - 0.5) * 2.0
    return is_zero.select(x, x.compare("ogt", 89.0).select(x.like(float("inf")), result))


def tanh(x: Value) -> Value:
    """An odd polynomial near 0, ``1 - 2 / (e^2x + 1)`` beyond."""
    magnitude = x.intrinsic("fabs")
    square = x * x
    near = (x * square).fma(polynomial(square, coefficients.TANH), x)
    grown = _small_exp(clamped(magnitude, 0.0, 10.0) * 2.0)
    far = x.like(1.0) - x.like(2.0) / (grown + 1.0)
    result = magnitude.compare("olt", 0.625).select(near, far).intrinsic("copysign", x)
    return x.compare("uno", x).select(x, result)


def erf(x: Value) -> Value:
    """An odd polynomial near 0, ``1 - exp(-polynomial)`` beyond."""
    magnitude = clamped(x.intrinsic("fabs"), 0.0, 4.0)
    near = x.fma(polynomial(x * x, coefficients.ERF_SMALL), x)
    far = (x.like(1.0) - _small_exp(-polynomial(magnitude, coefficients.ERF_LARGE))).intrinsic("copysign", x)
    return magnitude.compare("olt", 0.95).select(near, x.compare("uno", x).select(x, far))


def erfc(x: Value) -> Value:
    """``exp(-x^2)`` times what changes slowly: nothing cancels where the result is small. ``2 - erfc(-x)`` below 0."""
    a = clamped(x.intrinsic("fabs"), 0.0, 10.1)
    t = a * 0.5
    w = t.like(1.0) / (t + 1.0)
    s = t * w
    slow = s.fma(polynomial(s, coefficients.ERFC), 1.0) * w
    square = a * a
    lost = a.fma(a, -square)  # in rounding the square, where the processor fuses
    power = exp(-square)
    positive = (-lost).fma(power, power) * slow
    return x.compare("olt", 0.0).select(x.like(2.0) - positive, positive)


def sinh(x: Value) -> Value:
    """An odd polynomial below 1; beyond, from half of ``e^|x|``, which is finite wherever sinh is."""
    magnitude = x.intrinsic("fabs")
    square = x * x
    near = (x * square).fma(polynomial(square, coefficients.SINH), x)
    half = exp(magnitude, halvings=1)
    far = (half - x.like(0.25) / half).intrinsic("copysign", x)
    return magnitude.compare("olt", 1.0).select(near, far)


def cosh(x: Value) -> Value:
    """From half of ``e^|x|``, which is finite wherever cosh is."""
    half = exp(x.intrinsic("fabs"), halvings=1)
    return half + x.like(0.25) / half


def _reduced(x: Value) -> tuple[Value, Value]:
    """``n + ROUNDER`` and ``r`` with ``x = n ln 2 + r``, n whole, abs(r) <= ln(2)/2."""
    shifted = x.fma(LOG2_E, ROUNDER)
    n = _whole(shifted)
    return shifted, n.fma(-LN2_LOW, n.fma(-LN2_HIGH, x))


def _whole(shifted: Value) -> Value:
    return shifted - ROUNDER


def _integer(shifted: Value) -> Value:
    return shifted.bits() - shifted.like(ROUNDER).bits()


def _exp_of_remainder(r: Value) -> Value:
    return (r * r).fma(polynomial(r, coefficients.EXP), r) + 1.0


def _small_exp(x: Value) -> Value:
    """exp for arguments whose result is a normal number."""
    shifted, r = _reduced(x)
    if scales_in_one_step(x):
        return scaled(_exp_of_remainder(r), _whole(shifted))
    return _exp_of_remainder(r) * _power_of_two(_integer(shifted))


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


def _power_of_two(n: Value) -> Value:
    """``2**n`` for an integer n between -126 and 127."""
    return ((n + 127) << 23).as_float()
