"""Complex numbers: taking them apart, putting them together, and arithmetic.

The arithmetic operators take two complex operands or one complex and one real of its precision. A real operand has no
imaginary part: it scales both parts, so an infinity in one part does not become NaN in the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.operators.families import Array, array_of, declare
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from kernelgen.tensor.types import Attrs, Category, DType, TensorType, dtype

Types = tuple[TensorType, ...]

PARTS = {dtype("complex64"): dtype("float32"), dtype("complex128"): dtype("float64")}
WHOLES = {part: whole for whole, part in PARTS.items()}


def is_complex(d: DType) -> bool:
    """Complex numbers."""
    return d.category is Category.COMPLEX


def _part_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    if not is_complex(x.dtype):
        raise TypeRuleError(f"expects complex numbers, got {x.dtype}")
    return (TensorType(x.shape, PARTS[x.dtype], x.layout),)


def _part(name: str, function: Callable[[Array], Array], doc: str, *, composite: bool = False) -> Operator:
    def meaning(x: Array, *, attrs: Attrs) -> Array:
        return np.array(function(x))

    return declare(name, Kind.ELEMWISE, 1, _part_type, meaning, composite=composite, doc=doc)


C_REAL = _part("CReal", np.real, "The real part.")
C_IMAG = _part("CImag", np.imag, "The imaginary part.")
C_ABS = _part("CAbs", np.abs, "The absolute value.", composite=True)


def _complex_type(types: Types, attrs: Attrs) -> Types:
    real, imaginary = types
    if real.dtype != imaginary.dtype or real.dtype not in WHOLES:
        raise TypeRuleError(f"expects two float32 or two float64 operands, got {real.dtype} and {imaginary.dtype}")
    return (TensorType(broadcast_shapes((real.shape, imaginary.shape)), WHOLES[real.dtype], real.layout),)


def _complex(real: Array, imaginary: Array, *, attrs: Attrs) -> Array:
    """From real and imaginary part."""
    return together(*np.broadcast_arrays(real, imaginary))


def together(real: Array, imaginary: Array) -> Array:
    """Complex numbers from their parts, exactly: ``1j * inf`` would be NaN in the real part."""
    result = np.empty(real.shape, WHOLES[dtype(real.dtype)].numpy)
    result.real, result.imag = real, imaginary
    return result


COMPLEX = declare("Complex", Kind.ELEMWISE, 2, _complex_type, _complex)


def _binary_type(types: Types, attrs: Attrs) -> Types:
    wholes = {WHOLES.get(type_.dtype, type_.dtype) for type_ in types}
    if len(wholes) != 1 or not any(is_complex(type_.dtype) for type_ in types):
        raise TypeRuleError(
            f"expects complex operands of one precision, one may be real; got {', '.join(map(str, types))}"
        )
    return (TensorType(broadcast_shapes(type_.shape for type_ in types), wholes.pop(), types[0].layout),)


def _binary(name: str, function: Callable[[Array, Array], Array], doc: str, *, commutative: bool = False) -> Operator:
    def meaning(x: Array, y: Array, *, attrs: Attrs) -> Array:
        return array_of(function(x, y))

    return declare(name, Kind.ELEMWISE, 2, _binary_type, meaning, commutative=commutative, composite=True, doc=doc)


def _scaled(function: Callable[..., Array]) -> Callable[[Array, Array], Array]:
    """A product or quotient, part by part where the second operand is real."""

    def compute(x: Array, y: Array) -> Array:
        if np.iscomplexobj(x) and np.iscomplexobj(y):
            return function(x, y)
        return together(function(_real(x), y), function(_imaginary(x), y))

    return compute


def _product(x: Array, y: Array) -> Array:
    return _scaled(np.multiply)(x, y) if np.iscomplexobj(x) else _scaled(np.multiply)(y, x)


def _quotient(x: Array, y: Array) -> Array:
    return _scaled(np.divide)(x, y) if not np.iscomplexobj(y) else np.divide(x, y)


def _sum(x: Array, y: Array) -> Array:
    return together(_real(x) + _real(y), _imaginary(x) + _imaginary(y))


def _difference(x: Array, y: Array) -> Array:
    return together(_real(x) - _real(y), _imaginary(x) - _imaginary(y))


def _real(x: Array) -> Array:
    return array_of(np.real(x))


def _imaginary(x: Array) -> Array:
    return array_of(np.imag(x))


C_ADD = _binary("CAdd", _sum, "x + y.", commutative=True)
C_SUB = _binary("CSub", _difference, "x - y.")
C_MUL = _binary("CMul", _product, "x * y.", commutative=True)
C_DIV = _binary("CDiv", _quotient, "x / y.")
C_REAL_DIV = _binary("CRealDiv", _quotient, "x / y, the same as CDiv.")
