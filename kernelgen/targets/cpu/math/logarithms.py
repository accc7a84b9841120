"""log, log1p and pow for float, on any number of lanes."""

from __future__ import annotations

from kernelgen.targets import coefficients
from kernelgen.targets.cpu.math import tables, tabulated
from kernelgen.targets.cpu.math.polynomials import (
    LN2_HIGH,
    LN2_LOW,
    SIGNIFICAND_BITS,
    clamped,
    polynomial,
    polynomial_by_pairs,
)
from kernelgen.targets.cpu.math.register_tables import on_whole_registers, serve
from kernelgen.targets.cpu.text.values import Value

SQRT_HALF_BITS = 0x3F3504F3
WIDE_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
WIDE_ROUNDER = 1.5 * 2.0**52
WIDE_ROUNDER_BITS = 0x4338000000000000
INFINITY, NAN = float("inf"), float("nan")


def log(x: Value) -> Value:
    """``x = 2^e (1 + f)`` with ``sqrt(1/2) <= 1 + f < sqrt(2)``, then a polynomial in f."""
    if serve(x, len(tables.LOG_START)):
        return on_whole_registers(tabulated.log, x)
    is_subnormal = x.compare("olt", 2.0**-126)
    bits = is_subnormal.select(x * 2.0**SIGNIFICAND_BITS, x).bits()
    least = is_subnormal.select(bits.like(SQRT_HALF_BITS + (SIGNIFICAND_BITS << SIGNIFICAND_BITS)), SQRT_HALF_BITS)
    return _with_limits(_normal_log(bits - least), x)


def log1p(x: Value) -> Value:
    """``log(u) + (x - (u - 1)) / u`` with ``u`` the rounded sum ``1 + x``: the second term restores what rounding lost."""
    if serve(x, len(tables.LOG_START)):
        return on_whole_registers(tabulated.log1p, x)
    u = x + 1.0
    lost = x - (u - 1.0)
    result = _with_limits(_normal_log(u.bits() - SQRT_HALF_BITS) + lost / u, u)
    return x.compare("oeq", 0.0).select(x, result)


def log1p_up_to_one(x: Value) -> Value:
    """``x + x^2 P(x)`` for x from 0 to 1: no exponent has to be taken apart."""
    return (x * x).fma(polynomial(x, coefficients.LOG1P_UP_TO_ONE), x)


def _normal_log(offset: Value) -> Value:
    """The logarithm of a float whose bits are ``offset`` beyond those of ``sqrt(1/2)``."""
    f = ((offset & 0x7FFFFF) + SQRT_HALF_BITS).as_float() - 1.0
    e = offset.binary("ashr", SIGNIFICAND_BITS).convert("sitofp", "float")
    square = f * f
    tail = (square * f).fma(polynomial_by_pairs(f, square, coefficients.LOG), e * LN2_LOW) + square * -0.5
    return e.fma(LN2_HIGH, f + tail)


def _with_limits(result: Value, x: Value) -> Value:
    """``result``, the logarithm of ``x`` where that is finite."""
    result = x.compare("olt", INFINITY).select(result, x)
    result = x.compare("oeq", 0.0).select(x.like(-INFINITY), result)
    return x.compare("olt", 0.0).select(x.like(NAN), result)


def power(x: Value, y: Value) -> Value:
    """``2^(y log2 abs(x))`` in double, so that one rounding is left; then signs and special cases of C's pow.

    A cube is two products: they round twice, and have its signs and special cases.
    """
    if y.text == x.like(3.0).text:
        return x * x * x
    magnitude = x.intrinsic("fabs")
    exponent = _log2(magnitude.convert("fpext", "double")) * y.convert("fpext", "double")
    result = _exp2(exponent).narrowed()
    is_integer = y.intrinsic("rint").compare("oeq", y)
    half = y * 0.5
    is_odd = is_integer & half.intrinsic("rint").compare("une", half)
    is_negative = x.bits().compare("slt", 0)
    result = (is_negative & is_odd).select(-result, result)
    is_undefined = x.compare("olt", 0.0) & x.compare("ogt", -INFINITY) & ~is_integer
    result = is_undefined.select(x.like(NAN), result)
    is_one = x.compare("oeq", 1.0) | y.compare("oeq", 0.0)
    is_one = is_one | (x.compare("oeq", -1.0) & y.intrinsic("fabs").compare("oeq", INFINITY))
    return is_one.select(x.like(1.0), result)


def _log2(x: Value) -> Value:
    """log2 of a non-negative double that was a float."""
    offset = x.bits() - WIDE_SQRT_HALF_BITS
    mantissa = ((offset & ((1 << 52) - 1)) + WIDE_SQRT_HALF_BITS).as_float()
    e = _small_integer_to_double(offset.binary("ashr", 52))
    s = (mantissa - 1.0) / (mantissa + 1.0)
    result = s.fma(polynomial(s * s, coefficients.LOG2_WIDE), e)
    result = x.compare("olt", INFINITY).select(result, x)
    return x.compare("oeq", 0.0).select(x.like(-INFINITY), result)


def _exp2(x: Value) -> Value:
    """2**x in double, for a result that is rounded to float: beyond the range of float, bounds will do."""
    x = clamped(x, -1000.0, 1000.0)
    shifted = x + WIDE_ROUNDER
    small = polynomial(x - (shifted - WIDE_ROUNDER), coefficients.EXP2_WIDE)
    return (small.bits() + (shifted.bits() << 52)).as_float()


def _small_integer_to_double(n: Value) -> Value:
    """Exact for abs(n) < 2**51; AVX2 has no instruction for this."""
    return (n + WIDE_ROUNDER_BITS).as_float() - WIDE_ROUNDER
