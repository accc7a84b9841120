"""Integer arithmetic with numpy's meaning: wraps around, never traps, division by zero gives zero."""

from __future__ import annotations

from kernelgen.targets.cpu.text.values import Value, bit_width
from kernelgen.tensor.dtypes import Category, DType


def is_signed(dtype: DType) -> bool:
    """True for signed integers."""
    return dtype.category is Category.INT


def truncated_quotient(a: Value, b: Value, dtype: DType) -> Value:
    """C's ``a / b`` of integers of ``dtype``, rounded towards zero."""
    if not is_signed(dtype):
        return _nonzero(b).select(a.binary("udiv", _safe(b)), 0)
    quotient = _is_minus_one(b).select(-a, a.binary("sdiv", _signed_safe(b)))
    return _nonzero(b).select(quotient, 0)


def truncated_remainder(a: Value, b: Value, dtype: DType) -> Value:
    """C's ``a % b`` of integers of ``dtype``: the sign of the dividend."""
    if not is_signed(dtype):
        return _nonzero(b).select(a.binary("urem", _safe(b)), 0)
    return _nonzero(b).select(a.binary("srem", _signed_safe(b)), 0)


def floor_quotient(a: Value, b: Value, dtype: DType) -> Value:
    """``a // b`` of integers of ``dtype``, rounded towards minus infinity."""
    quotient = truncated_quotient(a, b, dtype)
    if not is_signed(dtype):
        return quotient
    return quotient + _is_crooked(a, b, dtype).convert("sext", a.kind)


def floor_remainder(a: Value, b: Value, dtype: DType) -> Value:
    """``a - b * (a // b)`` of integers of ``dtype``: the sign of the divisor."""
    remainder = truncated_remainder(a, b, dtype)
    if not is_signed(dtype):
        return remainder
    return remainder + _is_crooked(a, b, dtype).select(b, 0)


def power(a: Value, b: Value) -> Value:
    """``a ** b`` modulo the width, by squaring; a negative exponent counts as its unsigned bits."""
    result = a.like(1)
    for bit in range(bit_width(a.kind)):
        result = ((b.binary("lshr", bit) & 1).compare("ne", 0)).select(result * a, result)
        a = a * a
    return result


def _is_crooked(a: Value, b: Value, dtype: DType) -> Value:
    """True where a remainder is left and the signs differ, so that truncation and floor disagree."""
    return truncated_remainder(a, b, dtype).compare("ne", 0) & (a ^ b).compare("slt", 0)


def _nonzero(b: Value) -> Value:
    return b.compare("ne", 0)


def _is_minus_one(b: Value) -> Value:
    return b.compare("eq", -1)


def _safe(b: Value) -> Value:
    return _nonzero(b).select(b, 1)


def _signed_safe(b: Value) -> Value:
    """The divisor without 0 and -1: the smallest number divided by -1 would trap."""
    return (_nonzero(b) & ~_is_minus_one(b)).select(b, 1)
