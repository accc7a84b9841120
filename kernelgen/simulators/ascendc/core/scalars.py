"""The scalar unit: the value of an expression. Integers are int32 and must stay so, but where the text says uint32_t.

An expression is made a function once (:func:`evaluator`) and called as often as its statement runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernelgen.ascendc.expressions import (
    Binary,
    Choice,
    Convert,
    Core,
    Expression,
    Field,
    Flag,
    GetValue,
    Intrinsic,
    Name,
    Number,
    Unary,
    c_divide,
)
from kernelgen.tensor.dtypes import INT32, UINT32, DType

Value = int | float
LIMIT = 1 << 31
WORD = (1 << 32) - 1
COMPARISONS: Mapping[str, Callable[[Value, Value], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
INTEGERS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": c_divide,
    "%": lambda left, right: left - right * c_divide(left, right),
    "<<": operator.lshift,
    ">>": operator.rshift,
}
FLOATS: Mapping[str, Callable[[np.float32, np.float32], np.float32]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


class BadScalar(Exception):
    """A value that C++ does not define, or a name that nobody declared."""


@dataclass(frozen=True)
class Scope:
    """What an expression can name: ``values`` also holds the intrinsics and flags; ``read`` is GetValue."""

    values: Mapping[str, Value]
    fields: Mapping[str, int]
    read: Callable[[str, int], Value]

    def value(self, expression: Expression) -> Value:
        """The value of an expression. Raises BadScalar."""
        return evaluator(expression)(self)

    def integer(self, expression: Expression) -> int:
        """The value of an integer expression. Raises BadScalar for a float."""
        return whole(self.value(expression))


Evaluate = Callable[[Scope], Value]
"""Gives an expression's value. Raises BadScalar."""


def evaluator(expression: Expression) -> Evaluate:
    """The function that gives the value of an expression. Raises BadScalar for one that has none."""
    match expression:
        case Number(value):
            return lambda _: value
        case Name(name) | Intrinsic(name) | Flag(name) | Core(name):
            return lambda scope: _named(scope.values, name)
        case Field(_, field):
            return lambda scope: _named(scope.fields, field)
        case Unary(sign, operand):
            inner = evaluator(operand)
            return (lambda scope: int(not inner(scope))) if sign == "!" else (lambda scope: -inner(scope))
        case Binary("+" | "-" | "*" as sign, Convert(dtype) as left, right) if dtype is UINT32:
            return _wrapping(sign, evaluator(left), evaluator(right))
        case Binary(sign, left, right):
            return _binary(sign, evaluator(left), evaluator(right))
        case Choice(condition, then, otherwise):
            chosen, first, second = (evaluator(part) for part in (condition, then, otherwise))
            return lambda scope: first(scope) if chosen(scope) else second(scope)
        case Convert(dtype, operand):
            inner = evaluator(operand)
            if dtype.is_integer:
                return lambda scope: _fitting(dtype, inner(scope))
            return lambda scope: float(dtype.numpy.type(inner(scope)))
        case GetValue(tensor, index):
            place = evaluator(index)
            return lambda scope: scope.read(tensor, whole(place(scope)))
        case _:
            raise BadScalar(f"no value for a {type(expression).__name__}")


def whole(value: Value) -> int:
    """An integer value. Raises BadScalar for a float."""
    if not isinstance(value, int):
        raise BadScalar(f"an integer is needed, {value} is a float")
    return value


def _fitting(dtype: DType, value: Value) -> int:
    """The value as an integer of that type: of 32 bits those of the number, of fewer the number. Raises BadScalar."""
    if isinstance(value, int) and dtype in (INT32, UINT32):
        low = value & WORD
        return low - WORD - 1 if dtype is INT32 and low >= LIMIT else low
    limits = np.iinfo(dtype.numpy)
    if not limits.min <= value <= limits.max:
        raise BadScalar(f"{value} does not fit {dtype.name}")
    return int(value)


def _named(values: Mapping[str, Value], name: str) -> Value:
    found = values.get(name)
    if found is None:
        raise BadScalar(f"nobody declared {name!r}")
    return found


def _wrapping(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """Of unsigned numbers."""
    return lambda scope: INTEGERS[sign](whole(left(scope)), whole(right(scope))) & WORD


def _binary(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if sign == "&&":
        return lambda scope: int(bool(left(scope)) and bool(right(scope)))
    if sign == "||":
        return lambda scope: int(bool(left(scope)) or bool(right(scope)))
    if sign in COMPARISONS:
        compare = COMPARISONS[sign]
        return lambda scope: int(compare(left(scope), right(scope)))
    integers = INTEGERS[sign]
    plain = sign in "+-*"

    def value(scope: Scope) -> Value:
        first, second = left(scope), right(scope)
        if not (isinstance(first, int) and isinstance(second, int)):
            return _float(sign, first, second)
        if not plain:
            _check_operands(sign, second)
        found = integers(first, second)
        if not -LIMIT <= found < LIMIT:
            raise BadScalar(f"{first} {sign} {second} does not fit int32")
        return found

    return value


def _check_operands(sign: str, right: int) -> None:
    if sign in "/%" and right == 0:
        raise BadScalar("division by zero")
    if sign in ("<<", ">>") and not 0 <= right < 32:
        raise BadScalar(f"shift by {right}")


def _float(sign: str, left: Value, right: Value) -> Value:
    if sign not in FLOATS:
        raise BadScalar(f"no {sign} for floats")
    with np.errstate(all="ignore"):
        return float(FLOATS[sign](np.float32(left), np.float32(right)))
