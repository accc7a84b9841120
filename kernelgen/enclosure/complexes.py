"""Complex numbers, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.composite.vocabulary import SQUARE
from kernelgen.enclosure.arithmetic import add, divide, multiply, negated, square, subtract
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.tensor.dtypes import COMPLEX64, FLOAT32, FLOAT64, DType
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.elemwise import ADD, DIV, MUL, NEG, REAL_DIV, RECIPROCAL, SUB

Parts = tuple[Interval, Interval]


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
    c, d = y
    size = add(square(c, half), square(d, half), half)
    real, imaginary = _product(x, (c, negated(d)), half)
    return divide(real, size, half), divide(imaginary, size, half)
