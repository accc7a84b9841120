"""Complex numbers, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.composite.vocabulary import SQUARE
from kernelgen.enclosure.arithmetic import add, divide, multiply, negated, square, subtract
from kernelgen.enclosure.interval import Array, Interval, forgotten
from kernelgen.enclosure.rounding import TINY, UNIT, rounded, widened
from kernelgen.tensor.dtypes import COMPLEX64, FLOAT32, FLOAT64, DType
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.elemwise import ADD, DIV, MUL, NEG, REAL_DIV, RECIPROCAL, SUB

Parts = tuple[Interval, Interval]

ROUNDINGS = 6
"""Units in the last place that a quotient may be off, by the size of the quotient: three roundings above, three below it,
and its own are half a unit each."""


def parts_of(x: Interval) -> Parts:
    """The real and the imaginary parts; those of a real number are itself and 0."""
    if x.low.dtype.kind != "c":
        return x, Interval.exact(np.zeros(x.low.shape))
    return x.map(lambda bound: bound.real.copy()), x.map(lambda bound: bound.imag.copy())


def joined(real: Interval, imaginary: Interval) -> Interval:
    """The complex numbers with these parts, which may not be exact."""
    low = _paired(real.low, imaginary.low)
    exact = real.is_exact and imaginary.is_exact
    return Interval.exact(low) if exact else Interval(low, _paired(real.high, imaginary.high))


def _paired(real: Array, imaginary: Array) -> Array:
    """Part by part: ``re + 1j * im`` would spread a NaN or an infinity."""
    result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), np.complex128)
    result.real, result.imag = real, imaginary
    return result


def on_complex(op: Operator, operands: Sequence[Interval], kind: DType) -> Interval | None:
    """The operator ``op`` on complex ``operands`` of the data type ``kind``; None where it has no rule."""
    half = FLOAT32 if kind == COMPLEX64 else FLOAT64
    (a, b), (c, d) = parts_of(operands[0]), parts_of(operands[-1])
    if op is ADD:
        return joined(add(a, c, half), add(b, d, half))
    if op is SUB:
        return joined(subtract(a, c, half), subtract(b, d, half))
    if op is NEG:
        return joined(negated(a), negated(b))
    if op is MUL:
        return joined(*_product((a, b), (c, d), half))
    if op is SQUARE:
        return joined(*_product((a, b), (a, b), half))
    if op in (REAL_DIV, DIV):
        return joined(*_quotient((a, b), (c, d), half))
    if op is RECIPROCAL:
        one, zero = Interval.exact(np.ones(a.low.shape)), Interval.exact(np.zeros(a.low.shape))
        return joined(*_quotient((one, zero), (a, b), half))
    return None


def _product(x: Parts, y: Parts, half: DType) -> Parts:
    (a, b), (c, d) = x, y
    real = subtract(multiply(a, c, half), multiply(b, d, half), half)
    return real, add(multiply(a, d, half), multiply(b, c, half), half)


def _quotient(x: Parts, y: Parts, half: DType) -> Parts:
    """``x conj(y) / |y|^2`` of parts that are scaled by powers of two, and what roundings may do to any such formula.

    Errors are relative to the size of the quotient, not of its parts; subnormal parts are known to few digits only.
    """
    up, down = _exponent(x), _exponent(y)
    (a, b), (c, d) = (_scaled(parts, -exponent) for parts, exponent in ((x, up), (y, down)))
    size = add(square(c, FLOAT64), square(d, FLOAT64), FLOAT64)
    share = ROUNDINGS * UNIT[half] + 4 * np.ldexp(TINY[half], -down)
    slack = (a.magnitude + b.magnitude) * share + 4 * np.ldexp(TINY[half], -up)
    slack = slack * (c.magnitude + d.magnitude) / size.low
    unclear = ~(_finite(x) & _finite(y)) | (size.low <= 0)
    found = (divide(part, size, FLOAT64) for part in _product((a, b), (c, negated(d)), FLOAT64))
    real, imaginary = _scaled([widened(forgotten(each, unclear), slack) for each in found], up - down)
    return rounded(real, half), rounded(imaginary, half)


def _exponent(parts: Parts) -> Array:
    """The power of two above the larger part, 0 where that is not finite."""
    largest = np.maximum(parts[0].magnitude, parts[1].magnitude)
    return np.frexp(np.where(np.isfinite(largest), largest, 0.0))[1]


def _scaled(parts: Sequence[Interval], exponent: Array) -> Parts:
    real, imaginary = (part.map(lambda bound: np.ldexp(bound, exponent)) for part in parts)
    return real, imaginary


def _finite(parts: Parts) -> Array:
    return np.isfinite(parts[0].magnitude) & np.isfinite(parts[1].magnitude)
