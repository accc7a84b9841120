"""Conversions (``cvt``) between all number types, with PTX's rounding, clamping and saturation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.simulators.ptx.instructions.floats import join
from kernelgen.simulators.ptx.instructions.rounding import NEAREST, UP, ZERO, flush, mode_of, narrow, saturate, widen
from kernelgen.simulators.ptx.language.types import HALVES, PACKED, is_float, numpy_type, width_of

Compute = Callable[..., np.ndarray]
INTEGRAL: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def conversion(parts: tuple[str, ...], target: str, source: str) -> Compute | None:
    """The function of ``cvt`` from ``source`` to ``target`` (halves as bits), None where PTX has none that we know."""
    if target in PACKED and source == "f32":
        one = _between_floats(parts, PACKED[target], source)
        return lambda high, low: join(one(low), one(high))
    if target == "tf32":
        return _to_tensor_float(parts)
    if target in PACKED or source in PACKED:
        return None
    if is_float(source):
        return _between_floats(parts, target, source) if is_float(target) else _to_integer(parts, target, source)
    return _from_integer(parts, target, source) if is_float(target) else _between_integers(parts, target)


def _numbers(value: np.ndarray, kind: str) -> np.ndarray:
    return widen(value, kind) if kind in HALVES else value


def _between_integers(parts: tuple[str, ...], target: str) -> Compute:
    dtype = numpy_type(target)
    if "sat" not in parts:
        return lambda value: value.astype(dtype)
    limits = np.iinfo(dtype)

    def clamp(value: np.ndarray) -> np.ndarray:
        own = np.iinfo(value.dtype)
        return np.clip(value, max(limits.min, own.min), min(limits.max, own.max)).astype(dtype)

    return clamp


def _from_integer(parts: tuple[str, ...], target: str, source: str) -> Compute:
    mode, dtype = mode_of(parts), numpy_type(target)
    if target in HALVES or (mode != NEAREST and width_of(source) < 64):
        return lambda value: narrow(value.astype(np.float64), target, mode)
    if mode == NEAREST:
        return lambda value: value.astype(dtype)

    def directed(value: np.ndarray) -> np.ndarray:
        """64 bits fit into the x87 format, not into float64."""
        rounded, exact = value.astype(dtype), value.astype(np.longdouble)
        back = rounded.astype(np.longdouble)
        wrong = np.abs(back) > np.abs(exact) if mode == ZERO else back < exact if mode == UP else back > exact
        toward = {ZERO: dtype.type(0), UP: dtype.type(np.inf)}.get(mode, dtype.type(-np.inf))
        return np.where(wrong, np.nextafter(rounded, toward), rounded)

    return directed


def _to_integer(parts: tuple[str, ...], target: str, source: str) -> Compute:
    """Rounded to an integer, clamped to the target's range; NaN gives 0, or the lowest bit pattern for 64 bits."""
    round_it = next((INTEGRAL[part] for part in parts if part in INTEGRAL), np.trunc)
    dtype = numpy_type(target)
    limits = np.iinfo(dtype)
    low, high = np.float64(limits.min), np.float64(limits.max)  # the highest 64-bit one rounds up to a power of two
    for_nan = dtype.type(0) if width_of(target) < 64 else np.array(1 << 63, np.uint64).view(dtype)

    def convert(value: np.ndarray) -> np.ndarray:
        number = _numbers(value, source)
        number = flush(number) if "ftz" in parts and source == "f32" else number
        whole = round_it(number.astype(np.float64))
        inside = np.where((whole > low) & (whole < high), whole, 0).astype(dtype)
        clamped = np.where(whole >= high, limits.max, np.where(whole <= low, limits.min, inside)).astype(dtype)
        return np.where(np.isnan(number), for_nan, clamped)

    return convert


def _between_floats(parts: tuple[str, ...], target: str, source: str) -> Compute:
    mode = mode_of(parts)
    round_it = next((INTEGRAL[part] for part in parts if part in INTEGRAL), None)

    def convert(value: np.ndarray) -> np.ndarray:
        number = _numbers(value, source)
        if "ftz" in parts and source == "f32":
            number = flush(number)
        if round_it is not None:
            number = round_it(number)
        if "sat" in parts:
            number = saturate(number)
        if "relu" in parts:
            number = np.where(number > 0, number, np.where(np.isnan(number), number, 0)).astype(number.dtype)
        return number if target == source == "f32" else narrow(number.astype(np.float64), target, mode)

    return convert


def _to_tensor_float(parts: tuple[str, ...]) -> Compute:
    """tf32 keeps 10 bits after the point; ``rna`` takes ties away from zero, ``rn`` to even."""

    def convert(value: np.ndarray) -> np.ndarray:
        bits = value.view(np.uint32)
        half = np.uint32(0x1000) if "rna" in parts else np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
        rounded = (bits + half) & np.uint32(0xFFFFE000)
        return np.where(np.isfinite(value), rounded, bits)

    return convert
