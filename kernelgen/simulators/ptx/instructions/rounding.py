"""Correct rounding of float64 results to narrower formats, in every mode of PTX.

A result that is itself rounded in float64 could be rounded twice. Sums are therefore rounded to odd first: an inexact
one gets an odd last bit, from which rounding to at most 51 bits is right (Boldo and Melquiond 2008).
"""

from __future__ import annotations

import numpy as np

NEAREST, ZERO, DOWN, UP = "rn", "rz", "rm", "rp"
MODES = (NEAREST, ZERO, DOWN, UP)
SPLIT = np.float64(2**27 + 1)
NAN_BITS = {"f16": np.uint16(0x7FFF), "bf16": np.uint16(0x7FFF)}


def mode_of(parts: tuple[str, ...]) -> str:
    """The rounding mode among an opcode's parts, to nearest where none is written."""
    return next((part for part in parts if part in MODES), NEAREST)


def odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a + b`` in float64, rounded to odd."""
    total = a + b
    return _to_odd(total, _sum_error(a, b, total))


def narrow(exact: np.ndarray, kind: str, mode: str = NEAREST) -> np.ndarray:
    """A float64 value, exact or rounded to odd, as f64, f32 (numbers), or f16, bf16 (bits)."""
    match kind:
        case "f64":
            return exact
        case "f32":
            return _directed(exact, exact.astype(np.float32), mode)
        case "f16":
            return _directed(exact, exact.astype(np.float16), mode).view(np.uint16)
        case _:
            return _to_bfloat(exact, mode)


def widen(bits: np.ndarray, kind: str) -> np.ndarray:
    """The bits of f16 or bf16 numbers as float64, which holds each of them."""
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str, mode: str) -> np.ndarray:
    """``a * b + c`` with one rounding; a, b and c are float64 values that ``kind`` holds."""
    if kind == "f64":
        return _wide_fused(a, b, c)
    product = a * b  # exact: twice 24 bits fit in 53
    if kind != "f32" or mode != NEAREST:
        return narrow(odd_sum(product, c), kind, mode)
    total = product + c
    if _near_midpoint(total).any():
        total = odd_sum(product, c)
    return total.astype(np.float32)


def flush(value: np.ndarray) -> np.ndarray:
    """Subnormal f32 numbers as zeros of their sign (``.ftz``)."""
    small = np.abs(value) < np.finfo(np.float32).tiny
    return np.where(small, np.copysign(np.float32(0), value), value) if small.any() else value


def saturate(value: np.ndarray) -> np.ndarray:
    """Clamped to [0, 1], NaN to 0 (``.sat``)."""
    return np.where(value > 0, np.minimum(value, 1), 0).astype(value.dtype)


def _near_midpoint(total: np.ndarray) -> np.ndarray:
    """Where rounding ``total`` to f32 again could go wrong: at the middle between two numbers, or among subnormals."""
    low = total.view(np.uint64) & np.uint64((1 << 29) - 1)
    return (low == np.uint64(1 << 28)) | (np.abs(total) < np.finfo(np.float32).tiny)


def _sum_error(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The exact error of ``total = a + b`` (Knuth's two-sum)."""
    part = total - a
    return (a - (total - part)) + (b - part)


def _to_odd(value: np.ndarray, error: np.ndarray) -> np.ndarray:
    bits = value.view(np.int64)
    inexact = (error != 0) & np.isfinite(value) & (bits & 1 == 0)
    step = np.where((error > 0) == (value > 0), 1, -1)
    return np.where(inexact, bits + step, bits).view(np.float64)


def _directed(exact: np.ndarray, rounded: np.ndarray, mode: str) -> np.ndarray:
    """``rounded`` is the nearest; one step back where the mode forbids that side."""
    if mode == NEAREST:
        return rounded
    back = rounded.astype(np.float64)
    infinity = rounded.dtype.type(np.inf)
    if mode == ZERO:
        return np.where(np.abs(back) > np.abs(exact), np.nextafter(rounded, rounded.dtype.type(0)), rounded)
    if mode == DOWN:
        return np.where(back > exact, np.nextafter(rounded, -infinity), rounded)
    return np.where(back < exact, np.nextafter(rounded, infinity), rounded)


def _to_bfloat(exact: np.ndarray, mode: str) -> np.ndarray:
    """Through f32 rounded to odd; then 16 bits are cut off or rounded to the nearest even."""
    single = exact.astype(np.float32)
    error = exact - single.astype(np.float64)
    bits = single.view(np.int32)
    adjust = (error != 0) & np.isfinite(single) & (bits & 1 == 0)
    step = np.where((error > 0) == (single > 0), 1, -1)
    odd = np.where(adjust, bits + step, bits).astype(np.int32).view(np.uint32)
    if mode == NEAREST:
        odd = odd + np.uint32(0x7FFF) + ((odd >> np.uint32(16)) & np.uint32(1))
    return np.where(np.isnan(exact), NAN_BITS["bf16"], (odd >> np.uint32(16)).astype(np.uint16))


def _wide_fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The float64 case: two-product and two-sums, the parts joined to odd; exact without overflow or underflow."""
    product = a * b
    a_high = SPLIT * a - (SPLIT * a - a)
    b_high = SPLIT * b - (SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    low_total = c + error
    low_error = _sum_error(c, error, low_total)
    total = product + low_total
    result = total + odd_sum(_sum_error(product, low_total, total), low_error)
    return np.where(np.isfinite(result), result, product + c)
