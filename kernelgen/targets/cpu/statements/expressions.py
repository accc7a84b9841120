"""Typed scalar expressions as SSA values."""

from __future__ import annotations

from math import frexp

from kernelgen.nest.nodes import Call, Expr, IndexValue, Literal, Load, Ref
from kernelgen.targets.cpu.math import arithmetic, known_divisors, nibbles
from kernelgen.targets.cpu.statements import access, known_bounds
from kernelgen.targets.cpu.statements import bound_checks as borders
from kernelgen.targets.cpu.statements.quantized_bytes import QuantizedByte, quantized_byte
from kernelgen.targets.cpu.text.casts import cast
from kernelgen.targets.cpu.text.formats import register_kind, rounded
from kernelgen.targets.cpu.text.indices import index_value
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value, constant
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, UINT8, UINT16, UINT32, DType

_CONTRACTED = {"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract"}
"""Instructions of which LLVM may make one, where a product that says so is an operand of a sum that does."""
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
    if call.function == "round" and (quotient := _quotient_to_round(frame, call.args[0])):
        return quotient.intrinsic("roundeven")
    if call.function == "cast" and (quantized := _quantized(frame, call)):
        return quantized
    if (whole := _of_low_bits(call)) is not None:
        return nibbles.low_as_float(expression(frame, whole))
    operands = [expression(frame, argument) for argument in call.args]
    operand_dtype = call.args[-1].dtype
    if call.function == "cast":
        return cast(operands[0], operand_dtype, call.dtype, frame.host)
    if _is_contracted(call):
        left, right = operands
        return left.binary(_CONTRACTED[call.function], right)
    if (shorter := known_bounds.shorter(frame, call)) is not None:
        result = shorter(*operands)
    else:
        result = arithmetic.emitter(call.function)(operand_dtype, *operands)
    if call.dtype == BOOL or call.function in _UNROUNDED:
        return result
    return rounded(result, call.dtype, frame.host)


def _of_low_bits(call: Call) -> Expr | None:
    """The integer without a sign whose remainder by 16 becomes a float; None for other values."""
    if call.function != "cast" or call.dtype != FLOAT32 or not isinstance(rest := call.args[0], Call):
        return None
    is_rest = rest.function == "floor_mod" and rest.dtype in (UINT8, UINT16, UINT32)
    return rest.args[0] if is_rest and rest.args[1] == Literal(16, rest.dtype) else None


def _is_contracted(call: Call) -> bool:
    """Whether it is a sum, or a product that loses nothing, so that a sum of it is rounded once in any case.

    That is so of products by powers of two. Above one they may overflow; below one what is lost is below the least number.
    """
    if call.function not in _CONTRACTED or call.dtype not in (FLOAT32, FLOAT64):
        return False
    factors = (abs(arg.value) for arg in call.args if isinstance(arg, Literal))
    return call.function != "mul" or any(factor <= 1 and frexp(factor)[0] == 0.5 for factor in factors)


def _quantized(frame: Frame, cast: Call) -> Value | None:
    """A byte that a quantizer makes, or what is read of it as a wider number; None for other values."""
    if (byte := quantized_byte(frame, cast)) is not None:
        return _word(frame, byte).convert("trunc", register_kind(cast.dtype))
    inner = frame.call_of(cast.args[0])
    if cast.dtype not in (INT32, FLOAT32) or inner is None or inner.function != "cast":
        return None
    byte = quantized_byte(frame, inner)
    if byte is None or (inner is not cast.args[0] and inner.args[0].loads):
        return None
    word = _word(frame, byte)
    return word if cast.dtype == INT32 else word.convert("sitofp", "float")


def _word(frame: Frame, byte: QuantizedByte) -> Value:
    quotient = _quotient_to_round(frame, byte.number)
    return byte.word(expression(frame, byte.number) if quotient is None else quotient)


def _quotient_to_round(frame: Frame, quotient: Expr) -> Value | None:
    """A quotient by a literal that is rounded next, without a division; None for other values."""
    call = frame.call_of(quotient)
    if call is None or call.function != "div" or call.dtype != FLOAT32:
        return None
    x, divisor = call.args
    if not isinstance(divisor, Literal) or (call is not quotient and not isinstance(x, Ref)):
        return None  # what was loaded for a binding may have changed since
    return known_divisors.quotient_to_round(expression(frame, x), float(FLOAT32.numpy.type(divisor.value)))
