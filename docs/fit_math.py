"""Fits the polynomials of kernelgen/targets/coefficients.py and of kernelgen/targets/cpu/math/tables.py and prints them:
python docs/fit_math.py

Every fit is a weighted least-squares problem on Chebyshev nodes; Lawson's iteration multiplies the weights by the error,
which moves the solution towards the smallest maximum (the minimax polynomial). Weights make errors relative to the function
that is computed in the end, not to the fitted part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

Array = np.ndarray
LN2 = math.log(2)


def nodes(low: float, high: float, count: int = 4000) -> Array:
    """Chebyshev points of an interval."""
    angles = (np.arange(count) + 0.5) * math.pi / count
    return (low + high) / 2 + (high - low) / 2 * np.cos(angles)


def fit(x: Array, target: Array, weight: Array, degree: int, rounds: int = 60) -> Array:
    """Coefficients, lowest power first, of the polynomial in ``x`` with nearly the smallest maximal weighted error."""
    lawson, error, solution = np.ones_like(x), np.zeros_like(x), np.zeros(degree + 1)
    scale = np.abs(x).max()
    powers = (x[:, None] / scale) ** np.arange(degree + 1)
    for _ in range(rounds):
        rows = (weight * np.sqrt(lawson))[:, None] * powers
        solution = np.linalg.lstsq(rows, weight * np.sqrt(lawson) * target, rcond=None)[0]
        error = np.abs(weight * (powers @ solution - target))
        lawson = lawson * (error / error.max() + 1e-3)
        lawson /= lawson.mean()
    print(f"# max weighted error {error.max():.2e}")
    return solution / scale ** np.arange(degree + 1)


def each(function: Callable[[float], float], x: Array) -> Array:
    """A scalar function of the standard library on an array."""
    return np.array([function(float(value)) for value in x])


def scaled_erfc(x: float) -> float:
    """erfc(x) e^(x^2), by Laplace's continued fraction where the factors leave the range of numbers."""
    if x < 5:
        return math.erfc(x) * math.exp(x * x)
    below = x
    for k in range(80, 0, -1):
        below = x + k / 2 / below
    return 1 / (below * math.sqrt(math.pi))


def show(name: str, coefficients: Array, digits: int = 10) -> None:
    """One constant of the table."""
    print(f"{name} = ({', '.join(f'{c:.{digits}g}' for c in coefficients)})")


def rounded(x: float) -> float:
    """To float32."""
    return float(np.float32(x))


def show_odd(name: str, function: Callable[[float], float], tables: Mapping[int, tuple[float, int]]) -> None:
    """The ``tables`` of an odd ``function``, called ``name``: for each number of segments, from where on it is 1 and up to
    which degree there are coefficients.
    """
    print(f"{name}: Mapping[int, Segments] = {{")
    for segments, (least, degree) in tables.items():
        scale = best_scale(function, least, segments)
        columns = [segment(function, k, scale, degree) for k in range(segments)]
        print(f"    {segments}: Segments({scale:.9g}, (")
        for row in np.transpose(columns).tolist():
            print(f"        ({', '.join(f'{number:.9g}' for number in row)}),")
        print("    )),")
    print("}  # fmt: skip")


def best_scale(function: Callable[[float], float], least: float, segments: int) -> float:
    """How many ``segments`` a unit has, so that ``function`` is 1 from ``least`` on or a little further.

    Of all scales that will do, one at which the first constants are nearly floats, since the function is half as large where
    their segments begin.
    """
    scales = [rounded((segments - 0.51) / top) for top in np.linspace(least, 1.01 * least, 4000)]
    return min(scales, key=lambda scale: max(_lost(function, k, scale) for k in range(1, segments)))


def middle(k: int, scale: float) -> float:
    """Of a segment, as the kernel has it."""
    return k * rounded(1 / scale)


def _lost(function: Callable[[float], float], k: int, scale: float) -> float:
    """What rounding the constant and the slope costs where the segment ``k`` begins."""
    about, half, step = middle(k, scale), 0.5 / scale, 1e-4
    exact, slope = function(about), (function(about + step) - function(about - step)) / (2 * step)
    return (abs(rounded(exact) - exact) + half * abs(rounded(slope) - slope)) / function(about - half)


def segment(function: Callable[[float], float], k: int, scale: float, degree: int) -> Array:
    """The polynomial around the middle of segment ``k``, of ``scale`` to a unit, with a constant that is a float; of the
    first what is added to its argument. It has the coefficients of ``function`` up to ``degree``.
    """
    half = 0.501 / scale
    r = nodes(0 if k == 0 else -half, half)
    value, start = each(function, r + middle(k, scale)), rounded(function(middle(k, scale)))
    others = fit(r, (value - start) / r - (k == 0), np.abs(r) / value, degree - 1)
    return np.array([start, *others])


def show_log_segments() -> None:
    """Factors ``c`` near the reciprocal of each segment's middle, and ``-log c``, which is nearly a float.

    Segments are told by the four highest bits of a significand: from 1 to 3/2, then from 3/4 to 1. The factor is 1 next to 1.
    """
    lows = [1 + k / 16 if k < 8 else (1 + k / 16) / 2 for k in range(16)]
    highs = [low + 1 / 16 / (1 if low >= 1 else 2) for low in lows]
    factors = [
        1.0 if 1 in (low, high) else nearly_exact(2 / (low + high)) for low, high in zip(lows, highs, strict=True)
    ]
    print(f"LOG_FACTOR = ({', '.join(f'{factor:.9g}' for factor in factors)})  # fmt: skip")
    print(f"LOG_START = ({', '.join(f'{-math.log(factor):#.9g}' for factor in factors)})  # fmt: skip")


def nearly_exact(about: float) -> float:
    """A float close by whose logarithm is nearly one."""
    near = [rounded(about) + step * 2.0**-23 for step in range(-3000, 3000)]
    return min(near, key=lambda factor: abs(rounded(math.log(factor)) - math.log(factor)))


def show_tables() -> None:
    """Prints kernelgen/targets/cpu/math/tables.py."""
    r = nodes(-LN2 / 32 * 1.01, LN2 / 32 * 1.01)
    show("EXP", fit(r, (each(math.expm1, r) - r) / r**2, r**2 / np.exp(r), 1))
    f = nodes(-1 / 32, 1 / 16)
    log = each(math.log1p, f)
    show("LOG", fit(f, (log - f) / f**2, f**2 / np.abs(log), 3))
    show_log_segments()
    show_odd("ERF", math.erf, {16: (3.93, 5), 8: (3.93, 6)})
    show_odd("TANH", math.tanh, {16: (9.02, 7), 8: (9.2, 9)})


def main() -> None:
    """Prints the whole table."""
    r = nodes(-LN2 / 2 * 1.01, LN2 / 2 * 1.01)
    exponential = np.exp(r)
    show("EXP", fit(r, (each(math.expm1, r) - r) / r**2, r**2 / exponential, 4))
    show("EXPM1", fit(r, (each(math.expm1, r) - r) / r**2, r**2 / np.abs(each(math.expm1, r)), 5))
    f = nodes(math.sqrt(0.5) - 1, math.sqrt(2) - 1)
    log = each(math.log1p, f)
    show("LOG", fit(f, (log - f + f**2 / 2) / f**3, np.abs(f**3 / log), 8))
    x = nodes(1e-3, 1.0)
    log = each(math.log1p, x)
    show("LOG1P_UP_TO_ONE", fit(x, (log - x) / x**2, x**2 / log, 9))
    x = nodes(1e-3, 0.65)
    tanh = np.tanh(x)
    show("TANH", fit(x**2, (tanh / x - 1) / x**2, x**3 / tanh, 5))
    x = nodes(1e-3, 1.0)
    show("ERF_SMALL", fit(x**2, each(math.erf, x) / x - 1, x / each(math.erf, x), 6))
    x = nodes(0.9, 4.0)
    erfc = each(math.erfc, x)
    show("ERF_LARGE", fit(x, -np.log(erfc), erfc / (1 - erfc), 8))
    s = nodes(1e-3, 0.836)  # s = t / (1 + t) of t = x / 2, up to x = 10.1
    x = 2 * s / (1 - s)
    scaled = each(scaled_erfc, x) / (1 - s)
    show("ERFC", fit(s, (scaled - 1) / s, s / scaled, 7))
    x = nodes(1e-3, math.pi / 4 * 1.01)
    show("SIN", fit(x**2, (np.sin(x) / x - 1) / x**2, x**3 / np.sin(x), 3))
    show("COS", fit(x**2, (np.cos(x) - 1 + x**2 / 2) / x**4, x**4 / np.cos(x), 2))
    x = nodes(1e-3, 0.25)
    show("TANH_NEAR", fit(x**2, (np.tanh(x) / x - 1) / x**2, x**3 / np.tanh(x), 2))
    x = nodes(1e-3, 1.0)
    show("ATAN", fit(x**2, (np.arctan(x) / x - 1) / x**2, x**3 / np.arctan(x), 8))
    x = nodes(1e-3, 0.5)
    show("ASIN", fit(x**2, (np.arcsin(x) / x - 1) / x**2, x**3 / np.arcsin(x), 4))
    x = nodes(1e-3, math.pi / 4 * 1.01)
    show("SIN_WIDE", fit(x**2, np.sin(x) / x, x / np.sin(x), 5), 17)
    show("COS_WIDE", fit(x**2, np.cos(x), 1 / np.cos(x), 5), 17)
    x = nodes(1e-3, 1.05)
    show("SINH", fit(x**2, (np.sinh(x) / x - 1) / x**2, x**3 / np.sinh(x), 3))
    s = nodes(1e-4, (math.sqrt(2) - 1) / (math.sqrt(2) + 1) * 1.01)
    show("LOG2_WIDE", fit(s**2, 2 * np.arctanh(s) / s / LN2, s / (2 * np.arctanh(s) / LN2), 6), 17)
    show("ATANH", fit(s**2, (2 * np.arctanh(s) / s - 2) / s**2, s**3 / (2 * np.arctanh(s)), 3))
    t = nodes(-0.505, 0.505)
    show("EXP2_WIDE", fit(t, np.exp2(t), 1 / np.exp2(t), 8), 17)
    show_tables()


if __name__ == "__main__":
    main()
