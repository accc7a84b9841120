"""The element-wise operators and reductions of the composite vocabulary, in scalar functions of :mod:`kernelgen.nest.scalars`.

One declaration per operator serves every reader: a rule is written against an *algebra*, so the same rule yields numpy
arrays (:mod:`kernelgen.semantics`) or typed expressions (:class:`ExprAlgebra`, for the polyhedral builder).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from kernelgen.composite.vocabulary import (
    ADD_MIN_VALUE,
    ADD_N,
    FAST_GELU,
    SELECT_GE,
    SELECT_GT,
    SELECT_LE,
    SELECT_LT,
    SQUARE,
    ZEROS_LIKE,
    by_operator,
    facts,
)
from kernelgen.nest.nodes import Call, Expr, Literal
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.tensor.algebra import Algebra
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, Category, DType, dtype
from kernelgen.tensor.operator import Application, Operator
from kernelgen.tensor.operators import catalogue as basic

T = TypeVar("T")


@dataclass(frozen=True)
class Elementwise:
    """``rule(algebra, operands, node) -> value``; the value may still lack the cast to the data type of the node's output."""

    compute: Callable[[Algebra[Any], Sequence[Any], Application], Any]

    def __call__(self, algebra: Algebra[T], operands: Sequence[T], node: Application) -> T:
        """The operator's value for these operands."""
        return self.compute(algebra, operands, node)


class ExprAlgebra:
    """Builds typed expressions of a nest."""

    def call(self, function: str, *args: Expr | float) -> Expr:
        """A :class:`Call` whose operands have the data type that the function asks for."""
        kinds = operand_dtypes(function, tuple(None if isinstance(a, bool | int | float) else a.dtype for a in args))
        operands = tuple(self._operand(a, kind) for a, kind in zip(args, kinds, strict=True))
        result = BOOL if SCALARS[function].result is Result.BOOL else kinds[-1]
        return Call(function, operands, result)

    def cast(self, value: Expr, target: DType) -> Expr:
        """A cast, folded for constants, none when the type is right already."""
        if value.dtype == target:
            return value
        return self.literal(value.value, target) if isinstance(value, Literal) else Call("cast", (value,), target)

    def literal(self, value: float, target: DType) -> Expr:
        """A :class:`Literal`."""
        return Literal(constant(value, target), target)

    def dtype(self, value: Expr) -> DType:
        """The expression's data type."""
        return value.dtype

    def _operand(self, value: Expr | float, target: DType) -> Expr:
        return self.literal(value, target) if isinstance(value, bool | int | float) else self.cast(value, target)


def operand_dtypes(function: str, dtypes: tuple[DType | None, ...]) -> tuple[DType, ...]:
    """The data type each operand of a scalar function must have; None stands for a Python number.

    Logical functions and the condition of ``select`` take bool, all else the promoted type of the operands.
    """
    if function.startswith("logical_"):
        return (BOOL,) * len(dtypes)
    if function == "select":
        return (BOOL, *_promoted(dtypes[1:]))
    return _promoted(dtypes)


def constant(value: float, target: DType) -> bool | int | float:
    """A Python number as a constant of a data type; floats truncate towards zero, bool tests != 0."""
    if target == BOOL:
        return bool(value)
    return int(value) if target.is_integer else float(value)


def _promoted(dtypes: tuple[DType | None, ...]) -> tuple[DType, ...]:
    known = {d for d in dtypes if d is not None}
    shared = known.pop() if len(known) == 1 else dtype(np.result_type(*(d.numpy for d in known)))
    return (shared,) * len(dtypes)


# ---------------------------------------------------------------- rules


def direct(function: str) -> Elementwise:
    """The operator is one scalar function of its operands."""
    return Elementwise(lambda f, operands, node: f.call(function, *operands))


def floating(function: str) -> Elementwise:
    """Like :func:`direct`, but integers are computed in float64."""

    def compute(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
        return f.call(function, *(f.cast(x, FLOAT64) if _is_counted(f.dtype(x)) else x for x in operands))

    return Elementwise(compute)


def _is_counted(kind: DType) -> bool:
    """Integers and bools."""
    return kind.is_integer or kind == BOOL


def _copy(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    return operands[0]


def _cast(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    """The output's data type decides; ``dst_type`` only repeats it."""
    return f.cast(operands[0], node.out.dtype)


def _zeros_like(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    """Zero even where the operand is NaN or infinite."""
    return f.literal(0, f.dtype(operands[0]))


def _add_n(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    total = operands[0]
    for operand in operands[1:]:
        total = f.call("add", total, operand)
    return total


def _square(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    return f.call("mul", operands[0], operands[0])


def _add_min_value(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    """Adds the smallest normal float32, the smallest subnormal float16 (AKG's guard against division by zero)."""
    return f.call("add", operands[0], 2.0**-24 if f.dtype(operands[0]) == FLOAT16 else 2.0**-126)


def _fast_gelu(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    """``x * exp(1.702 * min(x, 0)) / (1 + exp(-1.702 * |x|))``: x * sigmoid(1.702 * x) without overflow.

    AKG's ``x - |x|`` is twice the minimum, and NaN at infinity.
    """
    x = _widened(f, operands[0])
    size = f.call("abs", x)
    growth = f.call("exp", f.call("mul", f.call("minimum", x, 0.0), 1.702))
    denominator = f.call("add", f.call("exp", f.call("mul", size, -1.702)), 1.0)
    return f.call("div", f.call("mul", x, growth), denominator)


def _select_by(comparison: str) -> Elementwise:
    """``SelectGT(a, b, x, y)``: x where ``a > b``, else y; written by AKG's fusion of a comparison and a Select."""

    def compute(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
        a, b, x, y = operands
        return f.call("select", f.call(comparison, a, b), x, y)

    return Elementwise(compute)


def _divide(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    """Floats divide; integers round towards zero, as in C, and by zero give 0.

    Integers of up to 32 bits, and their quotients, are exact in float64, where division is fast.
    """
    x, y = operands
    if not _is_counted(f.dtype(x)):
        return f.call("div", x, y)
    if max(f.dtype(x).bits, f.dtype(y).bits) > 32:
        return f.call("floor_div", f.call("sub", x, f.call("mod", x, y)), y)
    whole = f.call("trunc", f.call("div", f.cast(x, FLOAT64), f.cast(y, FLOAT64)))
    return f.call("select", f.call("equal", y, 0), 0.0, whole)


def _power(f: Algebra[T], operands: Sequence[T], node: Application) -> T:
    """Of integers modulo the width; to a negative exponent what is left of the quotient: 0 where the base is not 1 or -1."""
    x, y = operands
    power = f.call("pow", x, y)
    if f.dtype(y).category is not Category.INT:
        return power
    vanishes = f.call("logical_and", f.call("less", y, 0), f.call("not_equal", f.call("abs", x), 1))
    return f.call("select", vanishes, 0, power)


def _widened(f: Algebra[T], x: T) -> T:
    """Half precision in float32: a rule of several functions rounds once, at the end."""
    return f.cast(x, FLOAT32) if f.dtype(x) in (FLOAT16, BFLOAT16) else x


_FUNCTIONS: Mapping[Operator, str] = {
    basic.ADD: "add", basic.SUB: "sub", basic.MUL: "mul", basic.FLOOR_DIV: "floor_div", basic.MOD: "mod",
    basic.FLOOR_MOD: "floor_mod", basic.MAXIMUM: "maximum", basic.MINIMUM: "minimum", basic.ATAN2: "atan2", basic.NEG: "neg",
    basic.ABS: "abs", basic.SIGN: "sign", basic.FLOOR: "floor", basic.CEIL: "ceil", basic.TRUNC: "trunc",
    basic.ROUND: "round", basic.EQUAL: "equal", basic.NOT_EQUAL: "not_equal", basic.LESS: "less",
    basic.LESS_EQUAL: "less_equal", basic.GREATER: "greater", basic.GREATER_EQUAL: "greater_equal",
    basic.LOGICAL_AND: "logical_and", basic.LOGICAL_OR: "logical_or", basic.LOGICAL_NOT: "logical_not",
    basic.IS_NAN: "is_nan", basic.IS_INF: "is_inf", basic.IS_FINITE: "is_finite", basic.SELECT: "select",
}  # fmt: skip

_REAL_FUNCTIONS: Mapping[Operator, str] = {
    basic.REAL_DIV: "div", basic.SQRT: "sqrt", basic.RSQRT: "rsqrt", basic.RECIPROCAL: "reciprocal", basic.EXP: "exp",
    basic.EXPM1: "expm1", basic.LOG: "log", basic.LOG1P: "log1p", basic.TANH: "tanh", basic.ERF: "erf", basic.ERFC: "erfc",
    basic.SIN: "sin", basic.COS: "cos", basic.TAN: "tan", basic.SINH: "sinh", basic.COSH: "cosh", basic.ASIN: "asin",
    basic.ACOS: "acos", basic.ATAN: "atan", basic.ASINH: "asinh", basic.ACOSH: "acosh", basic.ATANH: "atanh",
}  # fmt: skip

ELEMENTWISE: Mapping[Operator, Elementwise] = by_operator({
    **{word: direct(function) for word, function in _FUNCTIONS.items()},
    **{word: floating(function) for word, function in _REAL_FUNCTIONS.items()},
    basic.CAST: Elementwise(_cast), basic.TENSOR_MOVE: Elementwise(_copy), ZEROS_LIKE: Elementwise(_zeros_like),
    ADD_N: Elementwise(_add_n), SQUARE: Elementwise(_square), basic.DIV: Elementwise(_divide), basic.POW: Elementwise(_power),
    ADD_MIN_VALUE: Elementwise(_add_min_value), FAST_GELU: Elementwise(_fast_gelu),
    SELECT_GT: _select_by("greater"), SELECT_LT: _select_by("less"),
    SELECT_GE: _select_by("greater_equal"), SELECT_LE: _select_by("less_equal"),
})  # fmt: skip
"""Operator -> rule. Operands broadcast as in numpy."""

OPERATOR_OF: Mapping[str, Operator] = {function: op for op, function in {**_FUNCTIONS, **_REAL_FUNCTIONS}.items()}
"""Scalar function -> the operator that is this function of its operands."""

REDUCTIONS: Mapping[Operator, str] = by_operator({
    basic.REDUCE_SUM: "add", basic.REDUCE_MAX: "maximum", basic.REDUCE_MIN: "minimum", basic.REDUCE_PROD: "mul",
    basic.REDUCE_ALL: "logical_and", basic.REDUCE_ANY: "logical_or",
})  # fmt: skip
"""Operator -> the associative function that folds the reduced dims (attributes ``axis``, ``keep_dims``)."""

PREDICATES = frozenset(facts(lambda word: word.traits.predicate))
"""The element-wise operators whose result is bool."""


def scalar_rule(node: Application) -> Elementwise | None:
    """The rule of an element-wise operator, of the vocabulary or declared outside of it; None of any other operator."""
    known, rule = ELEMENTWISE.get(node.op), node.op.scalar
    if known is not None or rule is None:
        return known
    return Elementwise(lambda f, x, node: rule(f, *(_widened(f, each) for each in x), attrs=node.attrs))
