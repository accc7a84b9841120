"""How each data type lies in memory and in registers, and the way between.

A bool is a byte in memory and ``i1`` in registers. float16 and bfloat16 are computed as float; a value of theirs in a
register is a float that was rounded to the format, so that storing it is exact.
"""

from __future__ import annotations

from kernelgen.errors import UnsupportedError
from kernelgen.targets.cpu.text.host import Host
from kernelgen.targets.cpu.text.values import Value
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, Category, DType

_FLOAT_KINDS = {FLOAT16: "float", BFLOAT16: "float", FLOAT32: "float", FLOAT64: "double"}


def register_kind(dtype: DType) -> str:
    """The LLVM type of one element in registers. Raises ``UnsupportedError`` for complex numbers."""
    if dtype.category is Category.COMPLEX:
        raise UnsupportedError("unsupported-dtype", f"the cpu target has no arithmetic for {dtype.name}")
    if dtype == BOOL:
        return "i1"
    return _FLOAT_KINDS.get(dtype) or f"i{dtype.bits}"


def memory_kind(dtype: DType, host: Host) -> str:
    """The LLVM type of one element in memory."""
    if dtype == BOOL:
        return "i8"
    if dtype == FLOAT16:
        return "half" if host.has_half else "i16"
    return "i16" if dtype == BFLOAT16 else register_kind(dtype)


def from_memory(value: Value, dtype: DType) -> Value:
    """What was loaded, as a register value."""
    if dtype == BOOL:
        return value.compare("ne", 0)
    if dtype == FLOAT16:
        return value.convert("fpext", "float") if value.kind == "half" else _half_bits_to_float(value)
    if dtype == BFLOAT16:
        return (value.convert("zext", "i32") << 16).as_float()
    return value


def to_memory(value: Value, dtype: DType, host: Host) -> Value:
    """A register ``value`` of that ``dtype`` as it is stored, on the processor ``host``."""
    if dtype == BOOL:
        return value.convert("zext", "i8")
    if dtype == FLOAT16:
        return value.convert("fptrunc", "half") if host.has_half else _float_to_half_bits(value)
    if dtype == BFLOAT16:
        return value.bits().binary("lshr", 16).convert("trunc", "i16")
    return value


def rounded(value: Value, dtype: DType, host: Host) -> Value:
    """A float ``value`` rounded to float16 or bfloat16, ties to even, where ``dtype`` is one of these, with what the
    processor ``host`` has for it.
    """
    if dtype == FLOAT16:
        return from_memory(to_memory(value, dtype, host), dtype)
    return _rounded_to_bfloat(value) if dtype == BFLOAT16 else value


def narrowed_to_odd(value: Value) -> Value:
    """A double as a float rounded to odd, so that rounding once more to a 16-bit format equals rounding once."""
    nearest = value.narrowed()
    back = nearest.convert("fpext", "double")
    too_large = back.intrinsic("fabs").compare("ogt", value.intrinsic("fabs"))
    truncated = nearest.bits() - too_large.convert("zext", "i32")
    is_inexact = back.compare("one", value)
    return is_inexact.select(truncated | 1, nearest.bits()).as_float()


def _rounded_to_bfloat(value: Value) -> Value:
    bits = value.bits()
    carry = (bits.binary("lshr", 16) & 1) + 0x7FFF
    nan = (bits | 0x400000) & 0xFFFF0000
    return value.compare("uno", value).select(nan, (bits + carry) & 0xFFFF0000).as_float()


def _half_bits_to_float(half: Value) -> Value:
    """Shifts exponent and fraction into place; multiplying by 2**112 rebiases, which also normalises subnormals."""
    wide = half.convert("zext", "i32")
    magnitude = (wide & 0x7FFF) << 13
    finite = (magnitude.as_float() * 2.0**112).bits()
    is_special = magnitude.compare("uge", 0x7C00 << 13)
    return (is_special.select(magnitude | 0x7F800000, finite) | ((wide & 0x8000) << 16)).as_float()


def _float_to_half_bits(value: Value) -> Value:
    """Rounds to nearest even: normal numbers by an integer add, subnormal ones by a float add of 0.5."""
    bits = value.bits()
    sign = bits.binary("lshr", 16) & 0x8000
    magnitude = bits & 0x7FFFFFFF
    odd = magnitude.binary("lshr", 13) & 1
    normal = (magnitude + odd - (0x38000000 - 0xFFF)).binary("lshr", 13)
    subnormal = (magnitude.as_float() + 0.5).bits() - 0x3F000000
    is_nan = magnitude.compare("ugt", 0x7F800000)
    special = is_nan.select(magnitude.like(0x7E00), magnitude.like(0x7C00))
    finite = magnitude.compare("ult", 0x38800000).select(subnormal, normal)
    overflows = magnitude.compare("uge", 0x477FF000)
    return (overflows.select(special, finite) | sign).convert("trunc", "i16")
