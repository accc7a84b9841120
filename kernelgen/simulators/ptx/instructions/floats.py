"""Floating-point arithmetic of PTX: f32 and f64 as numpy's own, halves through float64, one rounding each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.simulators.ptx.instructions.approximate import FUNCTIONS
from kernelgen.simulators.ptx.instructions.rounding import (
    NEAREST,
    flush,
    fused_multiply_add,
    mode_of,
    narrow,
    odd_sum,
    saturate,
    widen,
)
from kernelgen.simulators.ptx.language.types import HALVES, PACKED

Compute = Callable[..., np.ndarray]
NATIVE: Mapping[str, Compute] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    **FUNCTIONS,
}
MULTIPLY_ADD = ("fma", "mad")
SIGN_OPERATIONS = ("abs", "neg", "copysign")
ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "min": 2, "max": 2, "fma": 3, "mad": 3, "copysign": 2}


def float_compute(parts: tuple[str, ...], kind: str) -> Compute | None:
    """The function of an opcode on numbers of ``kind`` (bits for halves and pairs), None for an unknown one."""
    if kind in PACKED:
        single = float_compute(parts, PACKED[kind])
        return None if single is None else _on_pairs(single)
    compute = _compute(parts, kind)
    if compute is None:
        return None
    if kind == "f32" and "ftz" in parts:
        compute = _flushed(compute)
    if "sat" in parts:
        compute = _clamped(compute, kind)
    return compute


def arity(base: str) -> int:
    """How many operands an operation takes."""
    return ARITY.get(base, 1)


def _compute(parts: tuple[str, ...], kind: str) -> Compute | None:
    base, mode = parts[0], mode_of(parts)
    if base in SIGN_OPERATIONS:
        return _sign_operation(base, kind)
    if base in ("min", "max"):
        return _extreme(base, kind, "NaN" in parts)
    if base in MULTIPLY_ADD:
        return _fused(kind, mode, "relu" in parts)
    native = NATIVE.get(base)
    if native is None:
        return None
    if kind in HALVES:
        return lambda *values: narrow(native(*(widen(value, kind) for value in values)), kind)
    if base in FUNCTIONS and kind == "f32":
        return lambda value: native(value.astype(np.float64)).astype(np.float32)
    return native if kind == "f64" or mode == NEAREST else _rounded(base, native, mode)


def _rounded(base: str, native: Compute, mode: str) -> Compute:
    """An f32 operation in another mode: the float64 result is exact, or far from every f32 number, or rounded to odd."""
    if base in ("add", "sub"):
        sign = np.float64(1 if base == "add" else -1)
        return lambda a, b: narrow(odd_sum(a.astype(np.float64), sign * b.astype(np.float64)), "f32", mode)
    return lambda *values: narrow(native(*(value.astype(np.float64) for value in values)), "f32", mode)


def _fused(kind: str, mode: str, relu: bool) -> Compute:
    def compute(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        result = fused_multiply_add(_wide(a, kind), _wide(b, kind), _wide(c, kind), kind, mode)
        return np.where(_wide(result, kind) > 0, result, np.zeros_like(result)) if relu else result

    return compute


def _wide(value: np.ndarray, kind: str) -> np.ndarray:
    """Numbers of a kind as float64."""
    return widen(value, kind) if kind in HALVES else value.astype(np.float64)


def _sign_operation(base: str, kind: str) -> Compute:
    """On bits for halves, so that every NaN keeps its payload."""
    if kind in HALVES:
        low, sign = np.uint16(0x7FFF), np.uint16(0x8000)
        if base == "copysign":
            return lambda a, b: (b & low) | (a & sign)
        return (lambda a: a & low) if base == "abs" else (lambda a: a ^ sign)
    if base == "copysign":
        return lambda a, b: np.copysign(b, a)  # PTX takes the sign from its first operand
    return np.abs if base == "abs" else np.negative


def _extreme(base: str, kind: str, keeps_nan: bool) -> Compute:
    """The smaller or larger number; a NaN loses against a number unless ``.NaN`` is written."""
    table: dict[tuple[str, bool], Compute] = {
        ("min", False): np.fmin,
        ("max", False): np.fmax,
        ("min", True): np.minimum,
        ("max", True): np.maximum,
    }
    choose = table[base, keeps_nan]
    if kind in HALVES:
        return lambda a, b: narrow(choose(widen(a, kind), widen(b, kind)), kind)
    return choose


def _flushed(compute: Compute) -> Compute:
    return lambda *values: flush(compute(*(flush(value) for value in values)))


def _clamped(compute: Compute, kind: str) -> Compute:
    if kind in HALVES:
        return lambda *values: narrow(saturate(widen(compute(*values), kind)), kind)
    return lambda *values: saturate(compute(*values))


def _on_pairs(single: Compute) -> Compute:
    """The same on both halves of 32 bits."""

    def compute(*values: np.ndarray) -> np.ndarray:
        return join(single(*(low_half(value) for value in values)), single(*(high_half(value) for value in values)))

    return compute


def low_half(bits: np.ndarray) -> np.ndarray:
    """The lower 16 of 32 bits."""
    return bits.astype(np.uint16)


def high_half(bits: np.ndarray) -> np.ndarray:
    """The upper 16 of 32 bits."""
    return (bits >> np.uint32(16)).astype(np.uint16)


def join(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """32 bits from two halves."""
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
