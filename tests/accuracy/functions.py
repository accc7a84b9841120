"""The functions, what they are exactly, and the bounds of their errors in units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from graphkernel import ops

mp: Any = mpmath
GELU_GATE = 2 * math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Function:
    """``compute`` records on Tensors. ``wide`` is exact for up to 32 bits: numpy in float64, by other formulas than ours.

    ``exact`` is for float64, in mpmath's numbers. A bound is in units in the last place; where a small result comes from
    the exponential of a large number it grows by ``tail`` for each unit of the result's logarithm, which is what rounding the
    exponent costs.
    """

    name: str
    compute: Callable[..., Any]
    wide: Callable[..., Any]
    exact: Callable[..., Any]
    float32: float
    float64: float
    tail: float = 0.0
    operands: int = 1

    def bound(self, kind: str) -> float:
        """The bound for a data type; halves are computed in float32 and rounded once."""
        return {"float32": self.float32, "float64": self.float64}.get(kind, 0.51)


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return np.vectorize(function, otypes=[np.float64])


def _gate(x: Any) -> Any:
    return GELU_GATE * (x + 0.044715 * x**3)


def _exact_gate(x: Any) -> Any:
    return 2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)


def _exact_erfc(x: Any) -> Any:
    """mpmath has no patience for huge numbers."""
    return mp.erfc(min(max(x, mp.mpf(-1000)), mp.mpf(1000)))


def _exact_power(x: Any, y: Any) -> Any:
    """By logarithms: mpmath multiplies for whole exponents, however large."""
    if x < 0 and y != mp.floor(y):
        return mp.nan
    size = mp.exp(min(max(y * mp.log(abs(x)), mp.mpf(-2000)), mp.mpf(2000)))
    return -size if x < 0 and mp.fmod(y, 2) else size


def _exact_logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _times(x: Any, share: Any) -> Any:
    """x * share, 0 where the share is 0 for finite x."""
    return np.where(np.isfinite(x) & (share == 0), np.copysign(0.0, x), x * share)


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """NaN where mpmath would leave the real numbers."""

    def on_reals(*operands: Any) -> Any:
        value = function(*operands)
        return value if isinstance(value, mp.mpf) else mp.nan

    return on_reals


FUNCTIONS = (
    Function("exp", ops.exp, np.exp, mp.exp, 1.2, 1.0),
    Function("expm1", ops.expm1, np.expm1, mp.expm1, 1.6, 1.0),
    Function("log", ops.log, np.log, _real(mp.log), 1.2, 1.0),
    Function("log1p", ops.log1p, np.log1p, _real(mp.log1p), 1.6, 1.0),
    Function("tanh", ops.tanh, np.tanh, mp.tanh, 1.6, 2.3),
    Function("sinh", ops.sinh, np.sinh, mp.sinh, 1.8, 2.0),
    Function("cosh", ops.cosh, np.cosh, mp.cosh, 1.6, 2.0),
    Function("sin", ops.sin, np.sin, mp.sin, 1.7, 0.6),
    Function("cos", ops.cos, np.cos, mp.cos, 1.7, 0.6),
    Function("tan", ops.tan, np.tan, mp.tan, 0.51, 0.7),
    Function("asin", ops.asin, np.arcsin, _real(mp.asin), 0.51, 0.6),
    Function("acos", ops.acos, np.arccos, _real(mp.acos), 0.51, 0.6),
    Function("atan", ops.atan, np.arctan, mp.atan, 0.51, 0.6),
    Function("asinh", ops.asinh, np.arcsinh, mp.asinh, 0.51, 2.0),
    Function("acosh", ops.acosh, np.arccosh, _real(mp.acosh), 0.51, 2.3),
    Function("atanh", ops.atanh, np.arctanh, _real(mp.atanh), 0.51, 2.0),
    Function("sqrt", ops.sqrt, np.sqrt, _real(mp.sqrt), 0.5, 0.5),
    Function("rsqrt", ops.rsqrt, lambda x: 1 / np.sqrt(x), _real(lambda x: 1 / mp.sqrt(x) if x else mp.inf), 1.5, 1.5),
    Function("reciprocal", ops.reciprocal, lambda x: 1 / x, lambda x: 1 / x if x else mp.inf, 0.5, 0.5),
    Function("erf", ops.erf, _each(math.erf), mp.erf, 1.3, 1.0),
    Function("erfc", ops.erfc, _each(math.erfc), _exact_erfc, 6.5, 3.0, 1.0),
    Function("sigmoid", ops.sigmoid, _logistic, _exact_logistic, 3.0, 2.5),
    Function("silu", ops.silu, lambda x: _times(x, _logistic(x)), lambda x: x * _exact_logistic(x), 3.5, 3.0, 1.0),
    Function(
        "gelu", ops.gelu, lambda x: _times(x, _each(math.erfc)(-x / math.sqrt(2)) / 2),
        lambda x: x * _exact_erfc(-x / mp.sqrt(2)) / 2, 8.0, 8.0, 3.0,
    ),
    Function(
        "gelu, tanh", lambda x: ops.gelu(x, approximate="tanh"), lambda x: _times(x, _logistic(_gate(x))),
        lambda x: x * _exact_logistic(_exact_gate(x)), 6.0, 6.0, 3.0,
    ),
    Function("softplus", ops.softplus, lambda x: np.logaddexp(0, x), lambda x: mp.log1p(mp.exp(x)), 2.5, 2.5),
    Function("elu", ops.elu, lambda x: np.where(x < 0, np.expm1(x), x), lambda x: mp.expm1(x) if x < 0 else x, 1.6, 1.0),
    Function(
        "hsigmoid", ops.hsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6, lambda x: min(max(x + 3, mp.mpf(0)), mp.mpf(6)) / 6,
        1.5, 1.5,
    ),
    Function("pow", ops.pow, np.power, _exact_power, 0.52, 1.0, operands=2),
    Function("div", ops.real_div, np.divide, lambda x, y: x / y, 0.5, 0.5, operands=2),
    Function("atan2", ops.atan2, np.arctan2, mp.atan2, 0.51, 0.6, operands=2),
)  # fmt: skip
BY_NAME: Mapping[str, Function] = {function.name: function for function in FUNCTIONS}
