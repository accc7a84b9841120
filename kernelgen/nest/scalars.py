"""The scalar functions that a nest may call: the one table that targets, text and meaning share.

A target gives each name a spelling or refuses it. ``numpy`` is the meaning on arrays of one dtype.
Rounding: a function of float16/bfloat16 operands computes in float32 and rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

EXPONENT_BITS = 0x7F800000
"""Of a float32."""


class Result(Enum):
    """The result's dtype."""

    SAME = "as the operands"
    BOOL = "bool"
    GIVEN = "stated on the call"


@dataclass(frozen=True)
class ScalarFunction:
    """``cost`` is in nanoseconds per float32 element on one AVX2 core, for the recompute decisions."""

    name: str
    arity: int
    numpy: Callable[..., Any]
    cost: float
    result: Result = Result.SAME


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of the standard library on numpy arrays and scalars alike."""
    return np.vectorize(function, otypes=[np.float64])


def _power(x: Any, y: Any) -> Any:  # arrays or scalars
    if np.asarray(x).dtype.kind != "i":
        return np.power(x, y)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return np.power(x.astype(unsigned), y.astype(unsigned)).astype(x.dtype)


def _byte_dot(unsigned: Any, signed: Any) -> Any:
    """The sum of the four products of bytes of two words, those of the first without a sign."""
    first, second = (np.asarray(word, np.int32)[..., None] for word in (unsigned, signed))
    products = first.view(np.uint8).astype(np.int32) * second.view(np.int8).astype(np.int32)
    return products.sum(-1, dtype=np.int32)


def _half_dot(left: Any, right: Any) -> Any:
    """The sum of the two products of the halves of two words, which have signs."""
    first, second = (np.asarray(word, np.int32)[..., None].view(np.int16).astype(np.int32) for word in (left, right))
    return (first * second).sum(-1, dtype=np.int32)


def _byte_halves(pair: Any) -> Any:
    """The two bytes of a number of 16 bits, which have signs, as the halves of a word."""
    return np.asarray(pair, np.uint16)[..., None].view(np.int8).astype(np.int16).view(np.int32)[..., 0]


def _power_of_two(x: Any) -> Any:
    """The greatest power of two that is not above a normal number; 0 for numbers nearer to zero."""
    return (np.asarray(x, np.float32).view(np.int32) & EXPONENT_BITS).view(np.float32)


def _f(name: str, arity: int, numpy: Callable[..., Any], cost: float, result: Result = Result.SAME) -> ScalarFunction:
    return ScalarFunction(name, arity, numpy, cost, result)


_TABLE = (
    _f("add", 2, np.add, 0.05),
    _f("sub", 2, np.subtract, 0.05),
    _f("mul", 2, np.multiply, 0.05),
    _f("div", 2, np.divide, 0.3),  # true division; floats only
    _f("floor_div", 2, np.floor_divide, 0.5),
    _f("mod", 2, np.fmod, 2.0),  # C's fmod: the sign of the dividend
    _f("floor_mod", 2, np.mod, 2.0),  # the sign of the divisor
    _f("pow", 2, _power, 2.7),  # of integers modulo the width, a negative exponent by its unsigned bits
    _f("maximum", 2, np.maximum, 0.08),  # NaN wins
    _f("minimum", 2, np.minimum, 0.08),
    _f("atan2", 2, np.arctan2, 4.0),
    _f("bitwise_xor", 2, np.bitwise_xor, 0.05),  # integers only
    _f("bitwise_and", 2, np.bitwise_and, 0.05),  # integers only
    _f("byte_dot", 2, _byte_dot, 0.1),  # of words of four bytes as int32, see kernelgen.transforms.cpu.byte_words
    _f("half_dot", 2, _half_dot, 0.1),  # of words of two halves as int32, see kernelgen.transforms.cpu.byte_pairs
    _f("byte_halves", 1, _byte_halves, 0.05, Result.GIVEN),  # of uint16 as int32
    _f("neg", 1, np.negative, 0.05),
    _f("abs", 1, np.abs, 0.05),
    _f("sign", 1, np.sign, 0.1),
    _f("floor", 1, np.floor, 0.05),
    _f("ceil", 1, np.ceil, 0.05),
    _f("trunc", 1, np.trunc, 0.05),
    _f("round", 1, np.rint, 0.05),  # to nearest, ties to even
    _f("power_of_two", 1, _power_of_two, 0.05),  # of float32: what its exponent says; of no finite number infinity
    _f("sqrt", 1, np.sqrt, 0.3),
    _f("rsqrt", 1, lambda x: 1 / np.sqrt(x), 0.6),
    _f("reciprocal", 1, lambda x: 1 / x, 0.3),
    _f("exp", 1, np.exp, 0.63),
    _f("expm1", 1, np.expm1, 1.5),
    _f("log", 1, np.log, 1.14),
    _f("log1p", 1, np.log1p, 1.5),
    _f("tanh", 1, np.tanh, 1.48),
    _f("erf", 1, _each(math.erf), 1.93),
    _f("erfc", 1, _each(math.erfc), 1.93),  # 1 - erf(x), with all digits where that is small
    _f("sin", 1, np.sin, 1.0),
    _f("cos", 1, np.cos, 1.0),
    _f("tan", 1, np.tan, 2.0),
    _f("sinh", 1, np.sinh, 2.0),
    _f("cosh", 1, np.cosh, 2.0),
    _f("asin", 1, np.arcsin, 3.0),
    _f("acos", 1, np.arccos, 3.0),
    _f("atan", 1, np.arctan, 3.0),
    _f("asinh", 1, np.arcsinh, 3.0),
    _f("acosh", 1, np.arccosh, 3.0),
    _f("atanh", 1, np.arctanh, 3.0),
    _f("equal", 2, np.equal, 0.05, Result.BOOL),
    _f("not_equal", 2, np.not_equal, 0.05, Result.BOOL),
    _f("less", 2, np.less, 0.05, Result.BOOL),
    _f("less_equal", 2, np.less_equal, 0.05, Result.BOOL),
    _f("greater", 2, np.greater, 0.05, Result.BOOL),
    _f("greater_equal", 2, np.greater_equal, 0.05, Result.BOOL),
    _f("logical_and", 2, np.logical_and, 0.05, Result.BOOL),
    _f("logical_or", 2, np.logical_or, 0.05, Result.BOOL),
    _f("logical_not", 1, np.logical_not, 0.05, Result.BOOL),
    _f("is_nan", 1, np.isnan, 0.05, Result.BOOL),
    _f("is_inf", 1, np.isinf, 0.05, Result.BOOL),
    _f("is_finite", 1, np.isfinite, 0.05, Result.BOOL),
    _f("select", 3, np.where, 0.05),
    _f("cast", 1, lambda x: x, 0.05, Result.GIVEN),  # float to int truncates; to bool tests != 0
)

SCALARS: dict[str, ScalarFunction] = {function.name: function for function in _TABLE}

REDUCTIONS: tuple[str, ...] = ("add", "mul", "maximum", "minimum", "logical_and", "logical_or")
