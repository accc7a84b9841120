"""The scalar functions of :mod:`kernelgen.nest.scalars` as instructions: one entry per name.

An entry takes the operands and their dtype. float16 and bfloat16 arrive as floats; the caller rounds the result.
Transcendental functions are in :mod:`mathlib`.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelgen.nest.scalars import EXPONENT_BITS
from kernelgen.targets.cpu.math import byte_products, mathlib
from kernelgen.targets.cpu.text import integers
from kernelgen.targets.cpu.text.values import Value
from kernelgen.tensor.dtypes import BOOL, DType

Emit = Callable[..., Value]


def emitter(function: str) -> Emit:
    """How to print a function: called with the operands' dtype, then the operands."""
    return _TABLE.get(function) or _math(function)


def combine(function: str, dtype: DType, a: Value, b: Value) -> Value:
    """One step of a reduction: ``function`` of the registers ``a`` and ``b``, which hold numbers of ``dtype``."""
    return _TABLE[function](dtype, a, b)


def _by_family(floating: Emit, integral: Emit, boolean: Emit | None = None) -> Emit:
    def emit(dtype: DType, *operands: Value) -> Value:
        if dtype.is_float:
            return floating(*operands)
        if dtype == BOOL and boolean is not None:
            return boolean(*operands)
        return integral(dtype, *operands)

    return emit


def _comparison(floating: str, signed: str, unsigned: str) -> Emit:
    def emit(dtype: DType, a: Value, b: Value) -> Value:
        if dtype.is_float:
            return a.compare(floating, b)
        return a.compare(signed if integers.is_signed(dtype) else unsigned, b)

    return emit


def _extremum(floating: str, name: str) -> Emit:
    """``a`` wins where it compares so; a NaN in ``b`` makes the comparison false, so ``b`` wins then. One in ``a``
    is looked for beside that, so that what is accumulated in ``b`` waits for two instructions. A known number is put in
    the place of ``a``: then it is one instruction.
    """

    def emit(dtype: DType, a: Value, b: Value) -> Value:
        if dtype.is_float:
            a, b = (b, a) if b.is_number else (a, b)
            found = a.compare(floating, b).select(a, b)
            return found if a.is_number else a.compare("uno", a).select(a.like(float("nan")), found)
        if dtype == BOOL:
            return a | b if name == "max" else a & b
        return a.intrinsic(("s" if integers.is_signed(dtype) else "u") + name, b)

    return emit


def _float_floor_div(a: Value, b: Value) -> Value:
    """numpy's algorithm: divides what fmod leaves, then corrects the sign and the last rounding."""
    remainder = _fmod(a, b)
    is_crooked = remainder.compare("une", 0.0) & ((b.compare("olt", 0.0)) ^ (remainder.compare("olt", 0.0)))
    quotient = (a - remainder) / b
    quotient = is_crooked.select(quotient - 1.0, quotient)
    floor = quotient.intrinsic("floor")
    floor = (quotient - floor).compare("ogt", 0.5).select(floor + 1.0, floor)
    zero = quotient.like(0.0).intrinsic("copysign", a / b)
    return b.compare("oeq", 0.0).select(a / b, quotient.compare("oeq", 0.0).select(zero, floor))


def _float_floor_mod(a: Value, b: Value) -> Value:
    remainder = _fmod(a, b)
    is_crooked = b.compare("olt", 0.0) ^ remainder.compare("olt", 0.0)
    shifted = is_crooked.select(remainder + b, remainder)
    zero = remainder.like(0.0).intrinsic("copysign", b)
    return remainder.compare("oeq", 0.0).select(zero, shifted)


def _fmod(a: Value, b: Value) -> Value:
    return mathlib.library("fmod", a, b)


def _float_sign(a: Value) -> Value:
    one = a.like(1.0).intrinsic("copysign", a)
    return a.compare("one", 0.0).select(one, a.compare("uno", a).select(a, a.like(0.0)))


def _integer_sign(dtype: DType, a: Value) -> Value:
    positive = a.compare("sgt" if integers.is_signed(dtype) else "ne", 0).convert("zext", a.kind)
    if not integers.is_signed(dtype):
        return positive
    return positive | a.compare("slt", 0).convert("sext", a.kind)


def _integer_abs(dtype: DType, a: Value) -> Value:
    return a.compare("slt", 0).select(-a, a) if integers.is_signed(dtype) else a


def _rounding(name: str) -> Emit:
    return _by_family(lambda a: a.intrinsic(name), lambda _dtype, a: a)


def _truth(dtype: DType, a: Value) -> Value:
    if dtype == BOOL:
        return a
    return a.compare("une" if dtype.is_float else "ne", 0)


def _math(function: str) -> Emit:
    return lambda _dtype, *operands: mathlib.call(function, *operands)


_TABLE: dict[str, Emit] = {
    "add": _by_family(lambda a, b: a + b, lambda _, a, b: a + b, lambda a, b: a | b),
    "sub": lambda _, a, b: a - b,
    "mul": lambda _, a, b: a * b,
    "div": lambda _, a, b: a / b,
    "bitwise_xor": lambda _, a, b: a ^ b,
    "bitwise_and": lambda _, a, b: a & b,
    "byte_dot": lambda _, a, b: byte_products.added(a.like(0), a, b),
    "half_dot": lambda _, a, b: byte_products.of_halves(a, b),
    "byte_halves": lambda _, a: byte_products.widened(a),
    "floor_div": _by_family(_float_floor_div, lambda d, a, b: integers.floor_quotient(a, b, d)),
    "mod": _by_family(_fmod, lambda d, a, b: integers.truncated_remainder(a, b, d)),
    "floor_mod": _by_family(_float_floor_mod, lambda d, a, b: integers.floor_remainder(a, b, d)),
    "pow": _by_family(lambda a, b: mathlib.call("pow", a, b), lambda _, a, b: integers.power(a, b)),
    "maximum": _extremum("ogt", "max"),
    "minimum": _extremum("olt", "min"),
    "neg": lambda _, a: -a,
    "abs": _by_family(lambda a: a.intrinsic("fabs"), _integer_abs),
    "sign": _by_family(_float_sign, _integer_sign),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "round": _rounding("roundeven"),
    "power_of_two": lambda _, a: (a.bits() & EXPONENT_BITS).as_float(),
    "sqrt": lambda _, a: a.intrinsic("sqrt"),
    "rsqrt": lambda _, a: a.like(1.0) / a.intrinsic("sqrt"),
    "reciprocal": lambda _, a: a.like(1.0) / a,
    "equal": _comparison("oeq", "eq", "eq"),
    "not_equal": _comparison("une", "ne", "ne"),
    "less": _comparison("olt", "slt", "ult"),
    "less_equal": _comparison("ole", "sle", "ule"),
    "greater": _comparison("ogt", "sgt", "ugt"),
    "greater_equal": _comparison("oge", "sge", "uge"),
    "logical_and": lambda d, a, b: _truth(d, a) & _truth(d, b),
    "logical_or": lambda d, a, b: _truth(d, a) | _truth(d, b),
    "logical_not": lambda d, a: ~_truth(d, a),
    "is_nan": _by_family(lambda a: a.compare("uno", a), lambda _, a: a.compare("ne", a)),
    "is_inf": _by_family(lambda a: a.intrinsic("fabs").compare("oeq", float("inf")), lambda _, a: a.compare("ne", a)),
    "is_finite": _by_family(
        lambda a: a.intrinsic("fabs").compare("olt", float("inf")), lambda _, a: a.compare("eq", a)
    ),
    "select": lambda _, condition, a, b: condition.select(a, b),
}
