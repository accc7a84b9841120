"""exp and its family for float, on any number of lanes. Errors are at most 2 units in the last place."""

from __future__ import annotations

from kernelgen.nest.scalars import EXPONENT_BITS
from kernelgen.targets import coefficients
from kernelgen.targets.cpu.math import tables, tabulated
from kernelgen.targets.cpu.math.polynomials import (
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    ROUNDER,
    SIGNIFICAND_BITS,
    at_least,
    at_most,
    clamped,
    polynomial,
    scaled,
    scales_in_one_step,
)
from kernelgen.targets.cpu.math.register_tables import on_whole_registers, serve
from kernelgen.targets.cpu.text.values import Value

EXPONENT_OF_ONE = 127
"""As floats store it."""
LEAST, MOST = -105.0, 90.0
"""Beyond, ``e**x`` is 0 and infinity in float."""
MOST_HALVED = 89.5
"""Beyond, half of ``e**x`` is infinity."""


def exp(x: Value) -> Value:
    """``e**x`` by a table, or by one polynomial."""
    bounded = clamped(x, LEAST, MOST)
    if serve(x, len(tables.POWERS)):
        return on_whole_registers(tabulated.exp, bounded)
    return _power_of_e(bounded) if scales_in_one_step(x) else _power_in_two_steps(bounded)


def exp_of_at_most_zero(x: Value) -> Value:
    """``e**x`` of numbers that are not above 0, which need no bound there: subnormal results are built larger."""
    bounded = at_least(x, LEAST)
    return (
        on_whole_registers(tabulated.exp, bounded) if serve(x, len(tables.POWERS)) else _power_of_e(bounded, raised=64)
    )


def expm1(x: Value) -> Value:
    """``e**x - 1`` as ``2^n (e^r - 1) + (2^n - 1)``: nothing cancels near 0. Half of it is built, for n up to 128."""
    is_zero = x.compare("oeq", 0.0)
    shifted, r = _reduced(clamped(x, -30.0, 88.9), EXPONENT_OF_ONE - 1)
    minus_one = (r * r).fma(polynomial(r, coefficients.EXPM1), r)
    half_power = _power_of_two(shifted)
    return is_zero.select(x, minus_one.fma(half_power, half_power - 0.5) * 2.0)


def tanh(x: Value) -> Value:
    """An odd polynomial near 0, ``1 - 2 / (e^2x + 1)`` beyond."""
    if serve(x, *tables.TANH):
        return on_whole_registers(tabulated.tanh, x)
    magnitude = x.intrinsic("fabs")
    square = x * x
    near = (x * square).fma(polynomial(square, coefficients.TANH), x)
    grown = _power_of_e(at_most(magnitude, 10.0) * 2.0)
    far = x.like(1.0) - x.like(2.0) / (grown + 1.0)
    return magnitude.compare("olt", 0.625).select(near, far).intrinsic("copysign", x)


def erf(x: Value) -> Value:
    """An odd polynomial near 0, ``1 - exp(-polynomial)`` beyond."""
    if serve(x, *tables.ERF):
        return on_whole_registers(tabulated.erf, x)
    magnitude = at_most(x.intrinsic("fabs"), 4.0)
    near = x.fma(polynomial(x * x, coefficients.ERF_SMALL), x)
    far = x.like(1.0) - _power_of_e(-polynomial(magnitude, coefficients.ERF_LARGE))
    return magnitude.compare("olt", 0.95).select(near, far.intrinsic("copysign", x))


def erfc(x: Value) -> Value:
    """``exp(-x^2)`` times what changes slowly: nothing cancels where the result is small. ``2 - erfc(-x)`` below 0."""
    a = at_most(x.intrinsic("fabs"), 10.1)
    t = a * 0.5
    w = t.like(1.0) / (t + 1.0)
    s = t * w
    slow = s.fma(polynomial(s, coefficients.ERFC), 1.0) * w
    square = a * a
    lost = a.fma(a, -square)  # in rounding the square, where the processor fuses
    power = exp_of_at_most_zero(-square)
    positive = (-lost).fma(power, power) * slow
    return x.compare("olt", 0.0).select(x.like(2.0) - positive, positive)


def sinh(x: Value) -> Value:
    """An odd polynomial below 1; beyond, from half of ``e^|x|``, which is finite wherever sinh is."""
    magnitude = x.intrinsic("fabs")
    square = x * x
    near = (x * square).fma(polynomial(square, coefficients.SINH), x)
    half = _half_of_power(magnitude)
    far = (half - x.like(0.25) / half).intrinsic("copysign", x)
    return magnitude.compare("olt", 1.0).select(near, far)


def cosh(x: Value) -> Value:
    """From half of ``e^|x|``, which is finite wherever cosh is."""
    half = _half_of_power(x.intrinsic("fabs"))
    return half + x.like(0.25) / half


def _half_of_power(x: Value) -> Value:
    """Half of ``e**x`` for x >= 0."""
    return _power_of_e(at_most(x, MOST_HALVED), raised=-1, halvings=1)


def _power_of_e(x: Value, raised: int = 0, halvings: int = 0) -> Value:
    """``e**x / 2**halvings`` of bounded x: e^r of its remainder r by ln 2, times 2^n.

    What is multiplied is a normal number, ``2**raised`` times the result.
    """
    if scales_in_one_step(x):
        shifted, r = _reduced(x)
        return scaled(_minus_one(r) + 1.0, shifted - ROUNDER - halvings)
    shifted, r = _reduced(x, EXPONENT_OF_ONE + raised - halvings)
    power = _power_of_two(shifted)
    result = _minus_one(r).fma(power, power)
    return result * 2.0**-raised if raised else result


def _power_in_two_steps(x: Value) -> Value:
    """``e**x`` of bounded x: 2^n as two factors, so that neither overflows or vanishes early."""
    shifted, r = _reduced(x, 2 * EXPONENT_OF_ONE)
    bits = shifted.bits()
    lower = (bits << (SIGNIFICAND_BITS - 1)) & EXPONENT_BITS
    upper = (bits << SIGNIFICAND_BITS) - lower
    first, second = lower.as_float(), upper.as_float()
    return _minus_one(r).fma(first, first) * second


def _reduced(x: Value, more: int = 0) -> tuple[Value, Value]:
    """``n + more + ROUNDER`` and ``r`` with ``x = n ln 2 + r``, n whole, abs(r) <= ln(2)/2."""
    shifted = x.fma(LOG2_E, ROUNDER + more)
    n = shifted - (ROUNDER + more)
    return shifted, n.fma(-LN2_LOW, n.fma(-LN2_HIGH, x))


def _minus_one(r: Value) -> Value:
    """``e**r - 1``."""
    return (r * r).fma(polynomial(r, coefficients.EXP), r)


def _power_of_two(shifted: Value) -> Value:
    """``2**n`` of ``n + 127 + ROUNDER``, whose low bits are the exponent of a float. Of NaN it is any number."""
    return (shifted.bits() << SIGNIFICAND_BITS).as_float()
