"""One function in one data type: the worst error in units in the last place, where it is, and special values that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import mpmath
import numpy as np

import graphkernel as gk
from kernelgen.tensor.dtypes import dtype
from tests.accuracy.arguments import Array, arguments, mantissa_bits
from tests.accuracy.functions import Function

mp: Any = mpmath
LEAST_EXPONENT = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}


@dataclass(frozen=True)
class Errors:
    """``worst`` is the largest error in units in the last place, at ``at``; ``over_bound`` the largest share of the bound.

    ``special`` counts results that are NaN, infinite or a signed zero where the exact one is not, or the other way round.
    """

    worst: float
    at: tuple[str, ...]
    over_bound: float
    special: int
    count: int

    def record(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


def measured(function: Function, kind: str, count: int) -> Errors:
    """Compiles the function for the CPU and compares it with the exact values."""
    given = arguments(kind, count, function.operands)
    specs = [gk.spec(x.shape, kind) for x in given]
    (found,) = gk.compile(gk.trace(function.compute, *specs), opt_level=2)(*given)
    return _exactly(function, given, found) if kind == "float64" else _widely(function, kind, given, found)


def _widely(function: Function, kind: str, given: Sequence[Array], found: Array) -> Errors:
    """Against float64."""
    with np.errstate(all="ignore"):
        exact = np.asarray(function.wide(*(x.astype(np.float64) for x in given)), np.float64)
        rounded = exact.astype(np.float32).astype(dtype(kind).numpy).astype(np.float64)
        got = found.astype(np.float64)
    usual = np.isfinite(rounded) & np.isfinite(got)
    errors = np.abs(got[usual] - exact[usual]) / _spacing(exact[usual], kind)
    return _summary(function, kind, [x[usual] for x in given], errors, exact[usual], _differing(exact, rounded, got))


def _differing(exact: Array, rounded: Array, got: Array) -> int:
    """How often one is NaN or infinite and the other is not, or zeros have two signs."""
    usual = np.isfinite(rounded) & np.isfinite(got)
    agree = usual | (np.isnan(rounded) & np.isnan(got)) | (rounded == got)
    zeros = usual & (exact == 0) & (got == 0) & (np.signbit(exact) != np.signbit(got))
    return int(np.sum(~agree) + np.sum(zeros))


def _exactly(function: Function, given: Sequence[Array], found: Array) -> Errors:
    """Against mpmath, one by one; against numpy where an operand is zero, infinite or NaN, of which mpmath knows less."""
    plain = np.logical_and.reduce([np.isfinite(x) & (x != 0) for x in given])
    with np.errstate(all="ignore"):
        peculiar = np.asarray(function.wide(*(x[~plain] for x in given)), np.float64)
    chosen, got = [x[plain] for x in given], found[plain]
    with mp.workprec(160):
        exact = [_value(function, values) for values in zip(*(x.tolist() for x in chosen), strict=True)]
        rounded = np.array([float(value) for value in exact])
        usual = np.isfinite(rounded) & np.isfinite(got)
        lost = [float(abs(mp.mpf(float(got[k])) - exact[k])) for k in np.flatnonzero(usual)]
    signed = np.where(got == 0, np.copysign(got, rounded), got)  # mpmath has one zero
    special = _differing(peculiar, peculiar, found[~plain]) + _differing(rounded, rounded, signed)
    errors = np.array(lost) / _spacing(rounded[usual], "float64")
    return _summary(function, "float64", [x[usual] for x in chosen], errors, rounded[usual], special)


def _value(function: Function, values: Sequence[float]) -> Any:
    try:
        return function.exact(*map(mp.mpf, values))
    except (ZeroDivisionError, ValueError):
        return mp.nan


def _spacing(exact: Array, kind: str) -> Array:
    """The unit in the last place at a number, that of the least normal number at smaller ones."""
    _, exponents = np.frexp(exact)
    return np.ldexp(1.0, np.maximum(exponents - 1, LEAST_EXPONENT[kind]) - mantissa_bits(dtype(kind)))


def _summary(
    function: Function, kind: str, given: Sequence[Array], errors: Array, exact: Array, special: int
) -> Errors:
    grown = function.tail if dtype(kind).bits >= 32 else 0.0
    logarithms = np.abs(np.log(np.maximum(np.abs(exact), np.ldexp(1.0, LEAST_EXPONENT[kind]))))
    shares = errors / (function.bound(kind) + grown * np.where(np.abs(exact) < 1, logarithms, 0))
    worst = int(np.argmax(errors))
    at = tuple(repr(float(x[worst])) for x in given)
    return Errors(float(errors[worst]), at, float(shares.max()), special, errors.size)
