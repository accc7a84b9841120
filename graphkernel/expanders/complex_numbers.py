"""Arithmetic of complex numbers on their parts.

A real operand has no imaginary part: it scales or shifts, and costs no multiplication by zero. (MindSpore's CSub loses a
part where the second operand is real.)
"""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ops import Tensor
from kernelgen.tensor.operators import complex_numbers
from kernelgen.tensor.operators.complex_numbers import COMPLEX, is_complex
from kernelgen.tensor.types import Attrs


@expander(complex_numbers.C_ADD)
def complex_add(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """complex(re x + re y, im x + im y)"""
    (a, b), (c, d) = parts(x), parts(y)
    return ops.complex(a + c, _summed(b, d))


@expander(complex_numbers.C_SUB)
def complex_sub(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """complex(re x - re y, im x - im y)"""
    (a, b), (c, d) = parts(x), parts(y)
    return ops.complex(a - c, _summed(b, None if d is None else -d))


@expander(complex_numbers.C_MUL)
def complex_mul(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """complex(re x * re y - im x * im y, re x * im y + im x * re y)"""
    (a, b), (c, d) = parts(x), parts(y)
    if b is None or d is None:
        scale, imaginary = (c, b) if d is None else (a, d)
        return ops.complex(a * c, _present(imaginary) * scale)
    return ops.complex(a * c - b * d, a * d + b * c)


@expander(complex_numbers.C_DIV)
def complex_div(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """x / y by R. Smith's algorithm: complex((s + t * r) / n, (t - s * r) / n), r = q / p, n = p + q * r

    p is the larger part of y and q the smaller, s and t the parts of x in the same order; the imaginary part changes its
    sign where p is the imaginary part of y. Squares of the parts, which the school formula needs, would overflow.
    """
    return quotient(x, y)


@expander(complex_numbers.C_REAL_DIV)
def complex_real_div(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """As CDiv"""
    return quotient(x, y)


@expander(complex_numbers.C_ABS)
def complex_abs(x: Tensor, *, attrs: Attrs) -> Tensor:
    """m * sqrt(1 + r * r), r = n / m, m and n the larger and the smaller of |re x| and |im x|; r = 1 where they are equal"""
    real, imaginary = (abs(_present(part)) for part in parts(x))
    large, small = ops.maximum(real, imaginary), ops.minimum(real, imaginary)
    ratio = ops.select(ops.equal(large, small), 1.0, small / large)
    return large * ops.sqrt(1.0 + ratio * ratio)


def quotient(x: Tensor, y: Tensor) -> Tensor:
    """x / y, at least one being complex."""
    (a, b), (c, d) = parts(x), parts(y)
    if d is None:
        return ops.complex(a / c, _present(b) / c)
    real_is_larger = ops.greater_equal(abs(c), abs(d))
    p, q = ops.select(real_is_larger, c, d), ops.select(real_is_larger, d, c)
    imaginary = 0.0 if b is None else b
    s, t = ops.select(real_is_larger, a, imaginary), ops.select(real_is_larger, imaginary, a)
    r = q / p
    n = p + q * r
    turned = (t - s * r) / n
    return ops.complex((s + t * r) / n, ops.select(real_is_larger, turned, -turned))


def parts(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """Real and imaginary part; a real tensor has no imaginary one.

    What an earlier expansion put together is not put together and taken apart again: the parts meet in one kernel.
    """
    if not is_complex(x.dtype):
        return x, None
    made_of = tuple(Tensor(value, x.builder) for value in x.value.node.args)
    if x.value.op is COMPLEX and all(part.shape == x.shape for part in made_of):
        real, imaginary = made_of
        return real, imaginary
    return ops.creal(x), ops.cimag(x)


def _summed(x: Tensor | None, y: Tensor | None) -> Tensor:
    return x + y if x is not None and y is not None else _present(x if y is None else y)


def _present(x: Tensor | None) -> Tensor:
    if x is None:
        raise AssertionError("the type rule wants a complex operand")
    return x
