"""exp and its family for float, on any number of lanes. Errors are at most 2 units in the last place."""

from __future__ import annotations

from kernelgen.targets import coefficients
from kernelgen.targets.cpu.math import tabulated
from kernelgen.targets.cpu.math.polynomials import (
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    ROUNDER,
    at_least,
    clamped,
    polynomial,
    scaled,
    scales_in_one_step,
)
from kernelgen.targets.cpu.math.register_tables import on_whole_registers, serve
from kernelgen.targets.cpu.text.values import Value

LEAST, MOST = -105.0, 90.0
"""Beyond, ``e**x`` is 0 and infinity in float."""


def exp(x: Value) -> Value:
    """``e**x`` by a table, or by one polynomial."""
    return _bounded_exp(clamped(x, LEAST, MOST))


def exp_of_at_most_zero(x: Value) -> Value:
    """``e**x`` of numbers that are not above 0, which need no bound there."""
    return _bounded_exp(at_least(x, LEAST))


def _bounded_exp(x: Value) -> Value:
    return on_whole_registers(tabulated.exp, x) if serve(x) else _halved_exp(x, 0)


def _halved_exp(x: Value, halvings: int) -> Value:
    """``e**x / 2**halvings`` of bounded x: e^r of its remainder r by ln 2, times 2^n in two steps so that neither overflows
    early.
    """
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
    if serve(x):
        return on_whole_registers(tabulated.tanh, x)
    magnitude = x.intrinsic("fabs")
    square = x * x
    near = (x * square).fma(polynomial(square, coefficients.TANH), x)
    grown = _small_exp(clamped(magnitude, 0.0, 10.0) * 2.0)
    far = x.like(1.0) - x.like(2.0) / (grown + 1.0)
    result = magnitude.compare("olt", 0.625).select(near, far).intrinsic("copysign", x)
    return x.compare("uno", x).select(x, result)


def erf(x: Value) -> Value:
    """An odd polynomial near 0, ``1 - exp(-polynomial)`` beyond."""
    if serve(x):
        return on_whole_registers(tabulated.erf, x)
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
    half = _halved_exp(clamped(magnitude, LEAST, MOST), 1)
    far = (half - x.like(0.25) / half).intrinsic("copysign", x)
    return magnitude.compare("olt", 1.0).select(near, far)


def cosh(x: Value) -> Value:
    """From half of ``e^|x|``, which is finite wherever cosh is."""
    half = _halved_exp(clamped(x.intrinsic("fabs"), LEAST, MOST), 1)
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


def _power_of_two(n: Value) -> Value:
    """``2**n`` for an integer n between -126 and 127."""
    return ((n + 127) << 23).as_float()
