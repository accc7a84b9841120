"""Typed scalar expressions as SSA values."""

from __future__ import annotations

from kernelgen.nest.nodes import Call, Expr, IndexValue, Literal, Load, Ref
from kernelgen.targets.cpu.math import arithmetic, known_divisors
from kernelgen.targets.cpu.statements import access
from kernelgen.targets.cpu.statements import bound_checks as borders
from kernelgen.targets.cpu.text.casts import cast
from kernelgen.targets.cpu.text.formats import register_kind, rounded
from kernelgen.targets.cpu.text.indices import index_value
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value, constant
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, DType

_UNROUNDED = frozenset(("neg", "abs", "sign", "floor", "ceil", "trunc", "round", "maximum", "minimum", "select"))


def expression(frame: Frame, expr: Expr) -> Value:
    """The value of an expression: a scalar, or a vector when it varies along the lanes."""
    if frame.known.values and expr in frame.known.values:
        return frame.known.values[expr]
    match expr:
        case Literal(value, dtype):
            return literal(frame, value, dtype)
        case Load(buffer, index):
            return access.load(frame, buffer, index)
        case Ref(name):
            return frame.bindings[name]
        case IndexValue(index, dtype):
            return _converted_index(index_value(frame, index), dtype)
        case Call():
            return _call(frame, expr)


def literal(frame: Frame, value: float, dtype: DType) -> Value:
    """The constant ``value``, rounded to the ``dtype``, in ``frame``."""
    if dtype in (FLOAT16, BFLOAT16):
        value = float(dtype.numpy.type(value))
    return constant(frame.function, value, register_kind(dtype))


def _converted_index(value: Value, dtype: DType) -> Value:
    kind = register_kind(dtype)
    return value.convert("sitofp", kind) if dtype.is_float else value.convert("trunc", kind)


def _call(frame: Frame, call: Call) -> Value:
    if call.dtype == BOOL and len(call.args) == 2 and (lanes := borders.comparison(frame, call.function, *call.args)):
        return lanes
    if call.function == "round" and (nearest := _rounded_quotient(frame, call.args[0])):
        return nearest
    operands = [expression(frame, argument) for argument in call.args]
    operand_dtype = call.args[-1].dtype
    if call.function == "cast":
        return cast(operands[0], operand_dtype, call.dtype, frame.host)
    result = arithmetic.emitter(call.function)(operand_dtype, *operands)
    if call.dtype == BOOL or call.function in _UNROUNDED:
        return result
    return rounded(result, call.dtype, frame.host)


def _rounded_quotient(frame: Frame, quotient: Expr) -> Value | None:
    """The integers nearest to a quotient by a literal, without a division; None for other values."""
    call = frame.calls.get(quotient.name) if isinstance(quotient, Ref) else quotient
    if not isinstance(call, Call) or call.function != "div" or call.dtype != FLOAT32:
        return None
    x, divisor = call.args
    if not isinstance(divisor, Literal) or (call is not quotient and not isinstance(x, Ref)):
        return None  # what was loaded for a binding may have changed since
    return known_divisors.rounded_quotient(expression(frame, x), float(FLOAT32.numpy.type(divisor.value)))
