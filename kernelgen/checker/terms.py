"""Terms as numbers: what a nest computes, without rounding and without caring for the order of a sum.

A value is an integer modulo 2^64. An element of an input is a number of its own; ``add``, ``sub``, ``mul`` and ``neg`` are
those of the ring of such integers; ``maximum``, ``minimum`` and the logical functions gather their operands in any order
and forget none; every other function is a hash of its name and operands. So reductions may take their terms as they like,
but each once. Computations of different terms have different numbers but for a chance of about 2^-60. Conversions between
numbers change nothing; those to bool, and from floats to integers, are functions like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from kernelgen.dtypes import BOOL, Category, DType
from kernelgen.nest.scalars import SCALARS

TOP = 2**64 - 1
LEAST, GREATEST = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # of every signed number; numbers that nothing else has
Function = Callable[..., int]


def _hashed(number: int, *operands: int) -> int:
    return hash((number, *operands)) & TOP


def _gathered(factor: int, neutral: int, left: int, right: int) -> int:
    """``x + y + factor * x * y`` around the neutral element: associative, commutative, and no operand is ever lost.

    An even factor makes ``1 + factor * x`` odd, hence a unit of the ring; a maximum of numbers would forget all but one.
    """
    a, b = left - neutral, right - neutral
    return (a + b + factor * a * b + neutral) & TOP


def _functions() -> dict[str, Function]:
    table: dict[str, Function] = {name: partial(_hashed, number) for number, name in enumerate(SCALARS)}
    return table | {
        "add": lambda a, b: (a + b) & TOP,
        "sub": lambda a, b: (a - b) & TOP,
        "mul": lambda a, b: (a * b) & TOP,
        "neg": lambda a: -a & TOP,
        "maximum": partial(_gathered, 6, LEAST),
        "minimum": partial(_gathered, 10, GREATEST),
        "logical_and": lambda a, b: 0 if 0 in (a, b) else _gathered(14, TOP, a, b),
        "logical_or": lambda a, b: TOP if TOP in (a, b) else _gathered(18, 0, a, b),
        "logical_not": lambda a: ~a & TOP,
        "select": lambda c, a, b: {TOP: a, 0: b}.get(c, _hashed(-1, c, a, b)),
    }


FUNCTIONS: dict[str, Function] = _functions()
"""Scalar function -> what it does to numbers that stand for terms."""
UNSIGNED_MAXIMUM: Function = partial(_gathered, 6, 0)


def function(name: str, kind: DType) -> Function:
    """What a scalar function does to terms of operands of a data type: 0 is the least unsigned number."""
    return UNSIGNED_MAXIMUM if name == "maximum" and kind.category is Category.UINT else FUNCTIONS[name]


def neutral(name: str, kind: DType) -> int:
    """The number that changes nothing in a reduction."""
    least = 0 if kind.category is Category.UINT else LEAST
    return {"mul": 1, "maximum": least, "minimum": GREATEST, "logical_and": TOP}.get(name, 0)


def element(buffer: int, offset: int) -> int:
    """The number of an element of an input, by the input's position and the element's row-major number."""
    return hash((1001, buffer, offset)) & TOP


def literal(value: float, kind: DType) -> int:
    """The number of a constant: integers are themselves, but for the least and the greatest of a signed type."""
    if kind == BOOL:
        return TOP if value else 0
    if isinstance(value, float) and math.isinf(value):
        return GREATEST if value > 0 else LEAST
    if isinstance(value, float) and not value.is_integer():  # NaN too
        return hash((1002, repr(value))) & TOP
    if kind.is_integer and value == _greatest(kind):
        return GREATEST
    if kind.category is Category.INT and value == -_greatest(kind) - 1:
        return LEAST
    return int(value) & TOP


def place(number: int) -> int:
    """What a term is as an index: some small integer, at times outside of every buffer, as data may be."""
    return number % 13 - 2


def conversion(source: DType, target: DType) -> Function | None:
    """What a cast does to the number of a term, None when it does nothing."""
    if source == target or (source != BOOL and target != BOOL and not (source.is_float and target.is_integer)):
        return None
    if source == BOOL:
        return lambda value: {0: 0, TOP: 1}.get(value, hash((1003, value)) & TOP)
    if target == BOOL:
        return lambda value: 0 if value == 0 else hash((1004, value)) & TOP
    return lambda value: hash((1005, value)) & TOP


def _greatest(kind: DType) -> int:
    return 2 ** (kind.bits - (kind.category is Category.INT)) - 1
