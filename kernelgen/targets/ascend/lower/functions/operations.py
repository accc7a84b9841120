"""Every scalar function of a nest as vector instructions: most are one, the others a few.

    x // c       ->  Div, Cast to int32 by floor and back where that is exact
    a < b (i32)  ->  Max(a, b) == a says a >= b, its complement the rest: int32 compares by equality only
    tanh(x) ...  ->  formulas of :mod:`functions` and :mod:`angles`

Functions that need more digits than float16 has are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from kernelgen.errors import UnsupportedError
from kernelgen.targets.ascend.lower.functions import angles, doubles, functions, integers, powers
from kernelgen.targets.ascend.lower.functions.reals import Real
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.program.names import Constant, Held, Value
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT32, DType

Rule = Callable[[Lanes, Sequence[Value], DType], Held]

NATIVE: Mapping[str, str] = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "maximum": "Max",
    "minimum": "Min",
    "neg": "Muls",
}
"""Function -> the instruction that it is for some integers."""
WHOLE_DIGITS: Mapping[DType, float] = {FLOAT32: 2.0**23, FLOAT16: 2.0**11}
"""From here on every float is an integer."""
RING = ("add", "sub", "mul")
SWAPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
COMPLEMENTS = {"EQ": "NE", "GE": "LT", "LE": "GT"}
UNCHANGED = frozenset({("NE", False), ("GT", False), ("EQ", True), ("GE", True)})
"""Comparisons of a bool with a constant that give the bool back."""


def call(lanes: Lanes, function: str, args: Sequence[Value], dtype: DType) -> Held:
    """The value of a scalar function. Raises UnsupportedError where the machine has no instructions for it.

    Indices are int32 whatever the nest calls them: they count elements of a kernel's buffers. Sums, differences and
    products of unsigned numbers have the bits of those of signed numbers.
    """
    kind = dtype if dtype != BOOL else max((arg.dtype for arg in args), key=lambda one: one.bits)
    if kind == UINT32 and function in RING:
        signed = [_signed(lanes, arg) for arg in args]
        return lanes.seen_as(RULES[function](lanes, signed, INT32), UINT32)
    if dtype == INT64 and all(map(_is_word, args[1:] if function == "select" else args)):
        dtype = kind = INT32
        args = [Constant(arg.value, INT32) if isinstance(arg, Constant) else arg for arg in args]
    if function in integers.FUNCTIONS and _is_whole(function, kind) and not _is_native(lanes, function, kind):
        return integers.call(lanes, function, args, kind)
    if kind == FLOAT64 and function != "select":
        if function not in doubles.FUNCTIONS:
            raise UnsupportedError(
                "unsupported-dtype", f"{function} of float64: {lanes.machine.name} has no unit for it"
            )
        return doubles.call(lanes, function, args)
    if kind == BFLOAT16 and function not in ("select", "neg"):
        wide = [_widened(lanes, arg) for arg in args]
        return lanes.cast(RULES[function](lanes, wide, FLOAT32 if dtype == BFLOAT16 else dtype), dtype)
    if function not in RULES:
        raise UnsupportedError("unsupported-op", f"no vector instructions for {function}")
    return RULES[function](lanes, args, dtype)


def _is_whole(function: str, kind: DType) -> bool:
    return kind.is_integer or (function == "select" and kind == FLOAT64)


def _is_native(lanes: Lanes, function: str, kind: DType) -> bool:
    """Whether there are instructions for a function of whole numbers."""
    if function in NATIVE:
        return kind in lanes.machine.operations[NATIVE[function]]
    if function == "select":
        return kind.itemsize in (2, 4)
    return kind == INT32 and function not in integers.DIVISIONS and function in RULES


def _is_word(value: Value) -> bool:
    """Whether int32 holds the value."""
    return -(1 << 31) <= value.value < 1 << 31 if isinstance(value, Constant) else value.dtype == INT32


def _signed(lanes: Lanes, value: Value) -> Value:
    if isinstance(value, Constant):
        number = int(value.value)
        return Constant(number - (1 << 32) if number >= 1 << 31 else number, INT32)
    return lanes.seen_as(value, INT32)


def takes_whole_repeats(function: str, args: Sequence[DType], dtype: DType) -> bool:
    """Whether one of the instructions of a function compares, which is done for whole repeats only."""
    return function in COMPARING or BOOL in (dtype, *args)


def _native(lanes: Lanes, operation: str, dtype: DType) -> None:
    if dtype not in lanes.machine.operations[operation]:
        raise UnsupportedError("unsupported-dtype", f"{operation} of {dtype.name} on {lanes.machine.name}")


# ---------------------------------------------------------------- arithmetic


def _commutative(operation: str, with_scalar: str) -> Rule:
    def rule(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        _native(lanes, operation, dtype)
        first, second = args
        if isinstance(first, Constant):
            first, second = second, first
        if isinstance(second, Constant) and not isinstance(first, Constant):
            return lanes.scalar(with_scalar, first, float(second.value), dtype)
        return lanes.binary(operation, first, second, dtype)

    return rule


def _subtract(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    """``x - c`` is ``x + (-c)``, ``c - x`` is ``-x + c``: both exactly."""
    _native(lanes, "Sub", dtype)
    first, second = args
    if isinstance(second, Constant) and not isinstance(first, Constant):
        return lanes.scalar("Adds", first, -float(second.value), dtype)
    if isinstance(first, Constant):
        return lanes.scalar("Adds", lanes.scalar("Muls", second, -1, dtype), float(first.value), dtype)
    return lanes.binary("Sub", first, second, dtype)


def _divide(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    """A divisor that is a power of two is a factor."""
    _native(lanes, "Div", dtype)
    first, second = args
    if isinstance(second, Constant) and second.value and math.frexp(abs(float(second.value)))[0] == 0.5:
        return lanes.scalar("Muls", first, 1.0 / float(second.value), dtype)
    return lanes.binary("Div", first, second, dtype)


def _unary(operation: str) -> Rule:
    def rule(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        _native(lanes, operation, dtype)
        return lanes.unary(operation, args[0], dtype)

    return rule


def _negate(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    _native(lanes, "Muls", dtype)
    return lanes.scalar("Muls", args[0], -1, dtype)


def _absolute(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    if dtype in lanes.machine.operations["Abs"]:
        return lanes.unary("Abs", args[0], dtype)
    value = lanes.held(args[0])
    return lanes.binary("Max", value, _negate(lanes, (value,), dtype), dtype)


def _in_float32(rule: Rule) -> Rule:
    """The rule on float32; half precision goes there and back, other types are refused."""

    def wide(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        if dtype not in (FLOAT16, FLOAT32):
            raise UnsupportedError("unsupported-dtype", f"no such function of {dtype.name} on {lanes.machine.name}")
        return lanes.cast(rule(lanes, [_widened(lanes, arg) for arg in args], FLOAT32), dtype)

    return wide


def _widened(lanes: Lanes, value: Value) -> Value:
    return Constant(value.value, FLOAT32) if isinstance(value, Constant) else lanes.cast(value, FLOAT32)


# ---------------------------------------------------------------- whole numbers


def _rounded(mode: str) -> Rule:
    """Through int32; floats without a fraction are taken as they are."""

    def rule(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        value = lanes.held(args[0])
        whole = lanes.new(INT32)
        lanes.writer.emit("Cast", dst=whole.ref, src=value.ref, mode=mode, count=lanes.lanes)
        small = lanes.compare("LT", lanes.unary("Abs", value, FLOAT32), Constant(WHOLE_DIGITS[FLOAT32], FLOAT32))
        return lanes.select(small, lanes.cast(whole, FLOAT32), value, FLOAT32)

    return _in_float32(rule)


FLOOR, TRUNC = _rounded("CAST_FLOOR"), _rounded("CAST_TRUNC")


def _floor_divide(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    quotient = lanes.binary("Div", args[0], args[1], dtype)
    return FLOOR(lanes, (quotient,), dtype)


def _remainder(rounding: Rule) -> Rule:
    def rule(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        x, y = (lanes.held(arg) for arg in args)
        whole = rounding(lanes, (lanes.binary("Div", x, y, dtype),), dtype)
        return lanes.binary("Sub", x, lanes.binary("Mul", whole, y, dtype), dtype)

    return rule


# ---------------------------------------------------------------- functions


def _of_reals(function: Callable[..., Real]) -> Rule:
    """A formula of float32; half precision is rounded once."""

    def rule(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        return function(*(Real(lanes, lanes.held(arg)) for arg in args)).held

    return _in_float32(rule)


def _power(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    """Small whole exponents multiply; others go through logarithms."""
    base, exponent = args
    if isinstance(exponent, Constant) and float(exponent.value).is_integer() and 1 <= abs(exponent.value) <= 16:
        return _whole_power(lanes, base, int(exponent.value), dtype)
    if isinstance(exponent, Constant) and exponent.value == 0.5:
        return lanes.unary("Sqrt", base, dtype)
    return powers.power(Real(lanes, lanes.held(base)), Real(lanes, lanes.held(exponent))).held


def _whole_power(lanes: Lanes, base: Value, exponent: int, dtype: DType) -> Held:
    square, found, left = lanes.held(base), None, abs(exponent)
    while left:
        if left % 2:
            found = square if found is None else lanes.binary("Mul", found, square, dtype)
        left //= 2
        square = lanes.binary("Mul", square, square, dtype) if left else square
    product = square if found is None else found
    return product if exponent > 0 else lanes.binary("Div", Constant(1.0, dtype), product, dtype)


def _sign(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    """Integers are clamped to -1 and 1; floats keep their zero and their NaN."""
    if dtype.is_integer:
        _native(lanes, "Maxs", dtype)
        return lanes.scalar("Mins", lanes.scalar("Maxs", args[0], -1, dtype), 1, dtype)
    x, zero = lanes.held(args[0]), Constant(0.0, dtype)
    one, minus = Constant(1.0, dtype), Constant(-1.0, dtype)
    negative = lanes.select(lanes.compare("LT", x, zero), minus, x, dtype)
    return lanes.select(lanes.compare("GT", x, zero), one, negative, dtype)


# ---------------------------------------------------------------- bits


def _comparison(mode: str) -> Rule:
    def rule(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        first, second = args
        if isinstance(first, Constant):
            return _compared(lanes, SWAPPED[mode], second, first)
        return _compared(lanes, mode, first, second)

    return rule


def _compared(lanes: Lanes, mode: str, first: Value, second: Value) -> Held:
    kind = first.dtype if isinstance(first, Held) else second.dtype
    if kind in (FLOAT16, FLOAT32):
        return lanes.compare(mode, first, second)
    if kind == BOOL:
        return _compared_bits(lanes, mode, first, second)
    a, b = (lanes.held(_counted(lanes, value)) for value in (first, second))
    if mode in ("EQ", "NE"):
        equal = lanes.compare("EQ", a, b)
        return equal if mode == "EQ" else lanes.words("Not", equal)
    above = a if mode in ("GE", "LT") else b
    reached = lanes.compare("EQ", lanes.binary("Max", a, b, INT32), above)
    return reached if mode in ("GE", "LE") else lanes.words("Not", reached)


def _compared_bits(lanes: Lanes, mode: str, first: Value, second: Value) -> Held:
    """``a > b`` is ``a and not b``, ``a != b`` that one way or the other; the rest are complements of these."""
    if isinstance(second, Constant) and (mode, bool(second.value)) in UNCHANGED:
        return lanes.held(first)
    if mode in COMPLEMENTS:
        return lanes.words("Not", _compared_bits(lanes, COMPLEMENTS[mode], first, second))
    a, b = lanes.held(first), lanes.held(second)
    if mode == "NE":
        return lanes.words("Or", _compared_bits(lanes, "GT", a, b), _compared_bits(lanes, "LT", a, b))
    above, below = (a, b) if mode == "GT" else (b, a)
    return lanes.words("And", above, lanes.words("Not", below))


def _counted(lanes: Lanes, value: Value) -> Value:
    """As int32, in which casts to int64 keep the order. Raises UnsupportedError for what has no such value."""
    found = value.narrow or value if isinstance(value, Held) else Constant(value.value, INT32)
    fits = not isinstance(found, Constant) or -(1 << 31) <= found.value < 1 << 31
    if found.dtype != INT32 or not fits:
        raise UnsupportedError("unsupported-dtype", f"no comparison of {value.dtype.name} on {lanes.machine.name}")
    return found


def _words(operation: str) -> Rule:
    def rule(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        return lanes.words(operation, *(lanes.held(arg) for arg in args))

    return rule


def _select(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    condition, first, second = args
    if dtype == BOOL:
        chosen, a, b = (lanes.held(arg) for arg in args)
        return lanes.words("Or", lanes.words("And", chosen, a), lanes.words("And", lanes.words("Not", chosen), b))
    return lanes.select(lanes.held(condition), first, second, dtype)


def _is_nan(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    x = lanes.held(args[0])
    return lanes.compare("NE", x, x)


def _against_infinity(mode: str) -> Rule:
    def rule(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
        kind = args[0].dtype
        return lanes.compare(mode, lanes.unary("Abs", args[0], kind), Constant(math.inf, kind))

    return rule


REALS: Mapping[str, Callable[..., Real]] = {
    "expm1": functions.expm1, "log1p": functions.log1p, "tanh": functions.tanh, "sinh": functions.sinh,
    "cosh": functions.cosh, "asinh": functions.asinh, "acosh": functions.acosh, "atanh": functions.atanh,
    "erf": functions.erf, "erfc": functions.erfc, "atan": angles.atan, "atan2": angles.atan2, "asin": angles.asin,
    "acos": angles.acos, "sin": angles.sin, "cos": angles.cos, "tan": angles.tan,
}  # fmt: skip
COMPARING = frozenset({
    "floor", "ceil", "trunc", "round", "floor_div", "mod", "floor_mod", "pow", "sign", "select", *REALS,
})  # fmt: skip

RULES: Mapping[str, Rule] = {
    "add": _commutative("Add", "Adds"), "mul": _commutative("Mul", "Muls"),
    "maximum": _commutative("Max", "Maxs"), "minimum": _commutative("Min", "Mins"),
    "sub": _subtract, "div": _divide, "neg": _negate, "abs": _absolute,
    "exp": _unary("Exp"), "log": _unary("Ln"), "sqrt": _unary("Sqrt"), "rsqrt": _unary("Rsqrt"),
    "reciprocal": _unary("Reciprocal"),
    "floor": FLOOR, "trunc": TRUNC, "ceil": _rounded("CAST_CEIL"), "round": _rounded("CAST_RINT"),
    "floor_div": _in_float32(_floor_divide), "mod": _in_float32(_remainder(TRUNC)),
    "floor_mod": _in_float32(_remainder(FLOOR)), "pow": _in_float32(_power), "sign": _sign,
    **{name: _of_reals(function) for name, function in REALS.items()},
    "equal": _comparison("EQ"), "not_equal": _comparison("NE"), "less": _comparison("LT"),
    "less_equal": _comparison("LE"), "greater": _comparison("GT"), "greater_equal": _comparison("GE"),
    "logical_and": _words("And"), "logical_or": _words("Or"), "logical_not": _words("Not"), "select": _select,
    "is_nan": _is_nan, "is_inf": _against_infinity("EQ"), "is_finite": _against_infinity("LT"),
}  # fmt: skip
"""Scalar function of a nest -> how it is written. ``cast`` is :meth:`Lanes.cast`."""
