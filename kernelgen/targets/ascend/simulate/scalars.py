"""The scalar unit: the value of an expression. Integers are int32 and must stay so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernelgen.targets.ascend.expressions import (
    Binary,
    Choice,
    Convert,
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

Value = int | float
LIMIT = 1 << 31
COMPARISONS: Mapping[str, Callable[[Value, Value], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}
INTEGERS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": c_divide,
    "%": lambda left, right: left - right * c_divide(left, right),
    "<<": lambda left, right: left << right,
    ">>": lambda left, right: left >> right,
}
FLOATS: Mapping[str, Callable[[np.float32, np.float32], np.float32]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
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
        match expression:
            case Number(value):
                return value
            case Name(name) | Intrinsic(name) | Flag(name):
                return self._named(self.values, name)
            case Field(_, field):
                return self._named(self.fields, field)
            case Unary(operator, operand):
                value = self.value(operand)
                return int(not value) if operator == "!" else -value
            case Binary(operator, left, right):
                return self._binary(operator, left, right)
            case Choice(condition, then, otherwise):
                return self.value(then if self.value(condition) else otherwise)
            case Convert(dtype, operand):
                value = self.value(operand)
                return int(value) if dtype.is_integer else float(dtype.numpy.type(value))
            case GetValue(tensor, index):
                return self.read(tensor, self.integer(index))
            case _:
                raise BadScalar(f"no value for a {type(expression).__name__}")

    def integer(self, expression: Expression) -> int:
        """The value of an integer expression. Raises BadScalar for a float."""
        value = self.value(expression)
        if not isinstance(value, int):
            raise BadScalar(f"an integer is needed, {value} is a float")
        return value

    def _named(self, values: Mapping[str, Value], name: str) -> Value:
        if name not in values:
            raise BadScalar(f"nobody declared {name!r}")
        return values[name]

    def _binary(self, operator: str, left: Expression, right: Expression) -> Value:
        first = self.value(left)
        if operator == "&&":
            return int(bool(first) and bool(self.value(right)))
        if operator == "||":
            return int(bool(first) or bool(self.value(right)))
        second = self.value(right)
        if operator in COMPARISONS:
            return int(COMPARISONS[operator](first, second))
        if isinstance(first, int) and isinstance(second, int):
            return _integer(operator, first, second)
        if operator not in FLOATS:
            raise BadScalar(f"no {operator} for floats")
        with np.errstate(all="ignore"):
            return float(FLOATS[operator](np.float32(first), np.float32(second)))


def _integer(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%") and right == 0:
        raise BadScalar("division by zero")
    if operator in ("<<", ">>") and not 0 <= right < 32:
        raise BadScalar(f"shift by {right}")
    value = INTEGERS[operator](left, right)
    if not -LIMIT <= value < LIMIT:
        raise BadScalar(f"{left} {operator} {right} does not fit int32")
    return value
