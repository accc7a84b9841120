"""The ``cast`` function between every pair of data types, as numpy converts."""

from __future__ import annotations

from kernelgen.targets.cpu.text.formats import narrowed_to_odd, register_kind, rounded
from kernelgen.targets.cpu.text.host import Host
from kernelgen.targets.cpu.text.integers import is_signed
from kernelgen.targets.cpu.text.values import Value, bit_width
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, DType


def cast(value: Value, source: DType, target: DType, host: Host) -> Value:
    """The register ``value`` of the data type ``source`` as one of ``target``, with what the processor ``host`` has
    for it.

    Floats go to integers towards zero; numbers go to bool by ``!= 0``; integers wrap.
    """
    if source == target:
        return value
    if target == BOOL:
        return value.compare("une" if source.is_float else "ne", 0)
    if target.is_float:
        return _to_float(value, source, target, host)
    return _float_to_integer(value, target) if source.is_float else _resized(value, source, register_kind(target))


def _to_float(value: Value, source: DType, target: DType, host: Host) -> Value:
    kind = register_kind(target)
    if not source.is_float:
        if target in (FLOAT16, BFLOAT16) and source.bits > 16:
            value = _integer_to_float(value, source, "double")
            return rounded(narrowed_to_odd(value), target, host)
        return rounded(_integer_to_float(value, source, kind), target, host)
    if value.kind == kind:
        return rounded(value, target, host)
    if kind == "double":
        return value.convert("fpext", "double")
    if target in (FLOAT16, BFLOAT16):
        return rounded(narrowed_to_odd(value), target, host)
    return value.narrowed()


def _integer_to_float(value: Value, source: DType, kind: str) -> Value:
    return value.convert("sitofp" if is_signed(source) else "uitofp", kind)


def _float_to_integer(value: Value, target: DType) -> Value:
    """Narrow targets go through a wider signed integer, so that out-of-range values wrap as in C on this processor."""
    if target.bits == 64:
        return value.convert("fptosi" if is_signed(target) else "fptoui", "i64")
    through = "i64" if target.bits == 32 and not is_signed(target) else "i32"
    return _shrunk(value.convert("fptosi", through), register_kind(target))


def _resized(value: Value, source: DType, kind: str) -> Value:
    if bit_width(kind) <= bit_width(value.kind):
        return _shrunk(value, kind)
    return value.convert("sext" if is_signed(source) else "zext", kind)


def _shrunk(value: Value, kind: str) -> Value:
    return value.convert("trunc", kind)
