"""exp, log, log1p, erf and tanh of 16 floats, by short polynomials whose coefficients are looked up in registers; erf and
tanh of 8 floats too.

Segments of arguments are told apart by four bits or three, and those are what the tables are indexed by. Errors are at most 1.3
units in the last place. :mod:`exponentials` and :mod:`logarithms` say what other processors do.
"""

from __future__ import annotations

from kernelgen.targets.cpu.math import tables
from kernelgen.targets.cpu.math.polynomials import (
    LN2,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    ROUNDER,
    at_most,
    clamped,
    polynomial,
    scaled,
)
from kernelgen.targets.cpu.math.register_tables import looked_up
from kernelgen.targets.cpu.text.values import Value

SIXTEENTHS_ROUNDER = ROUNDER / 16  # adding it rounds to multiples of 1/16, of which the low bits are the index
INDEX_SHIFT = 19  # the four highest bits of a significand become the lowest
NEAR_ONE, NAN_BELOW_ZERO = 0b0011, 0b1000
"""How a significand is taken: within 3/4 and 3/2; NaN for negative numbers."""


def exp(x: Value) -> Value:
    """``e**x = 2^n 2^(k/16) e^r`` with ``x = (n + k/16) ln 2 + r``, abs(r) <= ln(2)/32; x from -105 to 90."""
    shifted = x.fma(LOG2_E, SIXTEENTHS_ROUNDER)
    n = shifted - SIXTEENTHS_ROUNDER
    r = n.fma(-LN2_LOW, n.fma(-LN2_HIGH, x))
    minus_one = (r * r).fma(polynomial(r, tables.EXP), r)
    power = looked_up(shifted.bits(), tables.POWERS)
    return scaled(power.fma(minus_one, power), n)


def erf(x: Value) -> Value:
    """By segments up to 4, where it is 1."""
    return _odd(x, tables.ERF[x.lanes])


def tanh(x: Value) -> Value:
    """By segments up to 9, where it is 1."""
    return _odd(x, tables.TANH[x.lanes])


def log(x: Value) -> Value:
    """``x = 2^e m``, ``m c = 1 + f`` for the ``c`` of m's segment, of which ``-log c`` is nearly a float.

    e is infinite for 0 and infinity, and m is NaN below 0.
    """
    segment, m, minus_e = _parts(x)
    f = m.fma(looked_up(segment, tables.LOG_FACTOR), -1.0)
    return _logarithm(segment, f, minus_e)


def log1p(x: Value) -> Value:
    """As log of ``u``, the rounded sum ``1 + x``, but ``f = x 2^-e c - (1 - 2^-e c)``, which has x itself in place of u.

    Where u rounds to 1, that is x, with its sign. Of infinite e the bounds leave f a number, or infinity.
    """
    segment, _, minus_e = _parts(x + 1.0)
    share = clamped(scaled(looked_up(segment, tables.LOG_FACTOR), minus_e), 2.0**-140, 2.0**126)
    return _logarithm(segment, x.fma(share, -(x.like(1.0) - share)), minus_e)


def _odd(x: Value, table: tables.Segments) -> Value:
    """A function that grows from 0 to 1: ``abs(x) = k / scale + r``, a polynomial in r with the coefficients of column k.

    Of the first segment, whose constant is 0, the polynomial is what is to be added to ``r``, so that small arguments keep
    their digits. Others have a constant larger than any ``r``.
    """
    magnitude = at_most(x.intrinsic("fabs"), (x.lanes - 0.51) / table.scale)
    shifted = magnitude.fma(table.scale, ROUNDER)
    r = (shifted - ROUNDER).fma(-1 / table.scale, magnitude)
    first, *others = (looked_up(shifted.bits(), row) for row in table.rows)
    total = others[-1]
    for term in reversed(others[:-1]):
        total = total.fma(r, term)
    start = first.compare("ogt", r).select(first, r)
    return total.fma(r, start).intrinsic("copysign", x)


def _parts(x: Value) -> tuple[Value, Value, Value]:
    """The segment, ``m`` and ``-e`` of ``x = 2^e m``, 3/4 <= m < 3/2; subnormal numbers are no exception."""
    m = _called("getmant", x, x.typed, f"i32 {NEAR_ONE | NAN_BELOW_ZERO}", f"{x.type} zeroinitializer")
    return m.bits().binary("lshr", INDEX_SHIFT), m, _exponent(m) - _exponent(x)


def _logarithm(segment: Value, f: Value, minus_e: Value) -> Value:
    """``e ln 2 - log c + log(1 + f)``, of the ``segment`` with that c; ln 2 is nearly a float too.

    Zeros of either sign stay: the others of the terms are -0 then.
    """
    small = (f * f).fma(polynomial(f, tables.LOG), f)
    return minus_e.fma(-LN2, looked_up(segment, tables.LOG_START) + small)


def _exponent(x: Value) -> Value:
    """The exponent as a float; that of 0 is minus infinity."""
    return _called("getexp", x, x.typed, f"{x.type} zeroinitializer")


def _called(name: str, x: Value, *operands: str) -> Value:
    """An instruction of AVX-512, without a mask, on 16 floats like ``x``; ``operands`` are printed with their types."""
    given = (*operands, "i16 -1", "i32 4")
    types = ", ".join(each[: each.index(">") + 1] if each[0] == "<" else each.split()[0] for each in given)
    callee = x.function.module.declare(f"llvm.x86.avx512.mask.{name}.ps.512", x.type, types)
    return Value(x.function, x.function.assign(f"call {x.type} {callee}({', '.join(given)})"), x.kind, x.lanes)
