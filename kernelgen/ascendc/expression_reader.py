"""Recursive descent for scalar expressions; the nodes are those of the text, nothing is folded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelgen.ascendc.expressions import (
    FLAGS,
    INTRINSICS,
    PRECEDENCE,
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
)
from kernelgen.ascendc.tokens import Cursor
from kernelgen.ascendc.types import CONVERSIONS, TYPE_NAMES

SPECIAL: Mapping[str, tuple[float, tuple[str, ...]]] = {
    "__builtin_inff": (float("inf"), ("(", ")")),
    "__builtin_nanf": (float("nan"), ("(", '""', ")")),
}
"""Function -> its value, and what follows its name."""
FUNCTIONS = {function: dtype for dtype, function in CONVERSIONS.items()}


def read_expression(cursor: Cursor, strength: int = 1) -> Expression:
    """An expression of operators that bind at least as tightly as ``strength``."""
    left = _primary(cursor)
    while (found := PRECEDENCE.get(cursor.text, 0)) >= strength:
        operator = cursor.take()
        left = Binary(operator, left, read_expression(cursor, found + 1))
    return left


def _primary(cursor: Cursor) -> Expression:
    if cursor.token.kind == "number":
        return Number(number(cursor.take()))
    if cursor.accept("-"):
        return _negative(cursor)
    if cursor.accept("!"):
        return Unary("!", _primary(cursor))
    if cursor.accept("("):
        return _parentheses(cursor)
    if cursor.accept("static_cast"):
        return _convert(cursor)
    return _named(cursor)


def _negative(cursor: Cursor) -> Expression:
    """A literal takes its sign, so that ``-1`` is one number."""
    operand = _primary(cursor)
    return Number(-operand.value) if isinstance(operand, Number) else Unary("-", operand)


def _parentheses(cursor: Cursor) -> Expression:
    inner = read_expression(cursor)
    if cursor.accept("?"):
        then = read_expression(cursor)
        cursor.expect(":")
        inner = Choice(inner, then, read_expression(cursor))
    cursor.expect(")")
    return inner


def _convert(cursor: Cursor) -> Expression:
    cursor.expect("<")
    spelling = cursor.name()
    if spelling not in TYPE_NAMES:
        raise cursor.error(f"unknown type {spelling!r}; known: {', '.join(TYPE_NAMES)}")
    cursor.expect(">")
    return Convert(TYPE_NAMES[spelling], _argument(cursor))


def _argument(cursor: Cursor) -> Expression:
    cursor.expect("(")
    operand = read_expression(cursor)
    cursor.expect(")")
    return operand


def _named(cursor: Cursor) -> Expression:
    name = cursor.name()
    if name in SPECIAL:
        value, rest = SPECIAL[name]
        cursor.expect(*rest)
        return Number(value)
    if name in FUNCTIONS:
        return Convert(FUNCTIONS[name], _argument(cursor))
    if name in FLAGS:
        return Flag(name)
    if name in INTRINSICS:
        cursor.expect("(", ")")
        return Intrinsic(name)
    if not cursor.accept("."):
        return Name(name)
    if not cursor.accept("GetValue"):
        return Field(name, cursor.name())
    cursor.expect("(")
    index = read_expression(cursor)
    cursor.expect(")")
    return GetValue(name, index)


def number(text: str) -> int | float:
    """The value of a literal; one with an ``f`` is rounded to float32, as the compiler would."""
    if text[:2].lower() == "0x":
        return int(text, 16)
    if text.isdigit():
        return int(text)
    return float(np.float32(text[:-1])) if text.endswith("f") else float(text)
