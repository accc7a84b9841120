"""Terms as numbers: what a nest computes, without rounding and without caring for the order of a sum.

A value is an integer modulo 2^64. An element of an input is a number of its own; ``add``, ``sub``, ``mul`` and ``neg`` are
those of the ring of such integers; ``maximum``, ``minimum`` and the logical functions gather their operands in any order
and forget none; every other function is a hash of its name and operands. So reductions may take their terms as they like,
but each once. Computations of different terms have different numbers but for a chance of about 2^-60. Conversions between
numbers change nothing; those to bool, and from floats to integers, are functions like any other.

A number of less than 34 bits is an integer that is known, such as an id of a Gather: those are compared and divided, not
hashed, so that conditions on places come out true or false. Where a kernel asks for the position of an extreme, numbers are
*ordered*: ``maximum`` takes the greater one of two, and every comparison is one of numbers. This order is a model like any
other, but it forgets what a maximum was made of; so it is used for such kernels alone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from kernelgen.nest.scalars import SCALARS
from kernelgen.tensor.dtypes import BOOL, UINT64, Category, DType

TOP = 2**64 - 1
KNOWN = 2**33  # integers of less are known
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


COMPARISONS: Mapping[str, Function] = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
DIVISIONS: Mapping[str, Function] = {"floor_div": operator.floordiv, "floor_mod": operator.mod}
"""With ``bitwise_xor``, the functions of words of 64 bits that a counter-based generator is made of."""


def known(number: int) -> int | None:
    """The integer that a number is, None for the others."""
    if number < KNOWN:
        return number
    return number - 2**64 if number > TOP - KNOWN else None


def _compared(compare: Function, otherwise: Function, left: int, right: int) -> int:
    a, b = known(left), known(right)
    if a is None or b is None:
        return otherwise(left, right)
    return TOP if compare(a, b) else 0


def _divided(divide: Function, otherwise: Function, left: int, right: int) -> int:
    return divide(left, right) & TOP if 0 < right < KNOWN else otherwise(left, right)


def rank(kind: DType, number: int) -> int:
    """The place of a number in the order: the least and the greatest of a type are so, others follow their sign."""
    if number in (LEAST, GREATEST):
        return -(2**65) if number == LEAST else 2**65
    return number if kind.category is Category.UINT or number <= TOP // 2 else number - 2**64


def _in_order(name: str, kind: DType) -> Function | None:
    place = partial(rank, kind)
    if name in COMPARISONS:
        return lambda a, b: TOP if COMPARISONS[name](place(a), place(b)) else 0
    choose = {"maximum": max, "minimum": min}.get(name)
    if choose is not None:
        return lambda a, b: choose(a, b, key=place)
    return (lambda number: TOP if number == literal(math.nan, kind) else 0) if name == "is_nan" else None


def function(name: str, kind: DType, ordered: bool = False) -> Function:
    """What a scalar function does to terms of operands of a data type: 0 is the least unsigned number."""
    found = _in_order(name, kind) if ordered else None
    if found is not None:
        return found
    if name in COMPARISONS and kind.is_integer:
        return partial(_compared, COMPARISONS[name], FUNCTIONS[name])
    if name == "bitwise_xor" and kind == UINT64:
        return operator.xor
    if name in DIVISIONS and kind == UINT64:
        return partial(_divided, DIVISIONS[name], FUNCTIONS[name])
    return UNSIGNED_MAXIMUM if name == "maximum" and kind.category is Category.UINT else FUNCTIONS[name]


def neutral(name: str, kind: DType) -> int:
    """The number that changes nothing in a reduction."""
    least = 0 if kind.category is Category.UINT else LEAST
    return {"mul": 1, "maximum": least, "minimum": GREATEST, "logical_and": TOP}.get(name, 0)


def element(buffer: int, offset: int, ordered: bool = False) -> int:
    """The number of an element of an input, by the input's position and the element's row-major number.

    Where numbers are ordered some elements are equal, so that an extreme may have several positions.
    """
    return hash((1001, buffer, hash((1006, offset)) % 41 if ordered else offset)) & TOP


def literal(value: float, kind: DType) -> int:
    """The number of a constant: integers are themselves, but for the least and the greatest of a signed type.

    Two that are the same float of their type are one constant; -0.0 is 0, since a ring has one zero: signs of zero are seen by
    the ranges of :mod:`kernelgen.enclosure`.
    """
    if kind == BOOL:
        return TOP if value else 0
    if kind.is_float:
        with np.errstate(over="ignore"):
            value = float(np.asarray(value).astype(kind.numpy))
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
    """What a term is as an index: itself, else some small integer, at times outside of every buffer, as data may be."""
    found = known(number)
    return number % 13 - 2 if found is None else found


def conversion(source: DType, target: DType) -> Function | None:
    """What a cast does to the number of a term, None when it does nothing."""
    if source == target or (source != BOOL and target != BOOL and not (source.is_float and target.is_integer)):
        return None
    if source == BOOL:
        return lambda value: {0: 0, TOP: 1}.get(value, hash((1003, value)) & TOP)
    if target == BOOL:
        return lambda value: 0 if value == 0 else hash((1004, value)) & TOP
    return lambda value: value if known(value) is not None else hash((1005, value)) & TOP


def _greatest(kind: DType) -> int:
    return 2 ** (kind.bits - (kind.category is Category.INT)) - 1
