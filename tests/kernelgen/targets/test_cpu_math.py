"""Transcendental functions on the CPU target: largest error in units in the last place, and special values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelgen.nest.nodes import Expr, Literal
from kernelgen.tensor.dtypes import FLOAT32
from tests.support.errors import ulps
from tests.support.nests import call, run_map

COUNT = 20_000
EXTREMES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-40, 3e38, -3e38], np.float32)

# name: lower and upper end of the arguments, largest error allowed, reference
UNARY = {
    "exp": (-104, 89, 1.2, np.exp), "expm1": (-20, 89, 1.6, np.expm1), "log": (1e-45, 3e38, 1.2, np.log),
    "log1p": (-0.999, 1e10, 2.0, np.log1p), "tanh": (-12, 12, 1.6, np.tanh), "erf": (-5, 5, 1.6, np.vectorize(math.erf)),
    "erfc": (-5, 1.2, 6.5, np.vectorize(math.erfc)),
    "sin": (-1e5, 1e5, 1.8, np.sin), "cos": (-1e5, 1e5, 1.8, np.cos),
    "tan": (-1e5, 1e5, 0.6, np.tan),
    "sinh": (-89, 89, 2.0, np.sinh), "cosh": (-89, 89, 2.0, np.cosh), "asin": (-1, 1, 0.6, np.arcsin),
    "acos": (-1, 1, 0.6, np.arccos), "atan": (-1e4, 1e4, 0.6, np.arctan), "asinh": (-1e4, 1e4, 0.6, np.arcsinh),
    "acosh": (1, 1e4, 0.6, np.arccosh), "atanh": (-0.999, 0.999, 0.6, np.arctanh), "sqrt": (0, 1e30, 0.5, np.sqrt),
    "rsqrt": (1e-30, 1e30, 1.5, lambda x: 1 / np.sqrt(x)), "reciprocal": (-1e30, 1e30, 0.5, lambda x: 1 / x),
}  # fmt: skip


def spread(low: float, high: float, seed: int = 0) -> np.ndarray:
    """Arguments over a range: half of them evenly, half with all exponents."""
    random = np.random.default_rng(seed)
    even = random.uniform(low, high, COUNT // 2)
    exponents = random.uniform(-30, math.log2(max(abs(low), abs(high))), COUNT // 2)
    wide = 2.0**exponents * np.where(random.integers(0, 2, COUNT // 2) == 0, 1, -1 if low < 0 else 1)
    if low > 0 and low < 1e-30:
        wide = 2.0 ** random.uniform(-149, 127, COUNT // 2)
    return np.clip(np.concatenate([even, wide]), low, high).astype(np.float32)


@pytest.mark.parametrize("name", UNARY)
def test_float_functions_are_accurate(name: str) -> None:
    low, high, bound, reference = UNARY[name]
    x = spread(low, high)
    with np.errstate(all="ignore"):
        exact = np.asarray(reference(x.astype(np.float64)), np.float64)
    assert ulps(run_map(lambda a: call(name, a), x), exact) <= bound


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str) -> None:
    reference = UNARY[name][3]
    with np.errstate(all="ignore"):
        exact = np.asarray(reference(EXTREMES.astype(np.float64)), np.float64)
    got = run_map(lambda a: call(name, a), EXTREMES)
    assert ulps(got, exact) <= 2.0
    zeros = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))


@pytest.mark.parametrize("name", UNARY)
def test_double_functions(name: str) -> None:
    low, high, _, reference = UNARY[name]
    x = np.random.default_rng(1).uniform(max(low, -50), min(high, 50), 200)
    np.testing.assert_allclose(run_map(lambda a: call(name, a), x), reference(x), rtol=4e-15)


@pytest.mark.parametrize("size", [1, 5, 8, 13])
def test_short_arrays_get_the_same_bits(size: int) -> None:
    x = np.linspace(-3, 3, 40, dtype=np.float32)
    whole = run_map(lambda a: call("tanh", call("exp", a)), x)
    np.testing.assert_array_equal(run_map(lambda a: call("tanh", call("exp", a)), x[:size].copy()), whole[:size])


def _power_below_one(a: Expr) -> Expr:
    return call("exp", call("neg", call("abs", a)))


def test_exp_and_log1p_of_what_is_known_to_be_within_bounds() -> None:
    x = np.concatenate([spread(-104, 104), spread(-3e38, 3e38), EXTREMES])
    with np.errstate(all="ignore"):
        power = np.exp(-np.abs(x.astype(np.float64)))
    assert ulps(run_map(_power_below_one, x), power) <= 1.2
    assert ulps(run_map(lambda a: call("log1p", _power_below_one(a)), x), np.log1p(power)) <= 2.0


def test_doubles_within_bounds_keep_their_digits() -> None:
    x = np.random.default_rng(0).uniform(-30, 30, 200)
    exact = np.log1p(np.exp(-np.abs(x)))
    np.testing.assert_allclose(run_map(lambda a: call("log1p", _power_below_one(a)), x), exact, rtol=4e-15)


def test_only_what_is_known_to_be_within_bounds_is_taken_so() -> None:
    x = spread(-80, 80)
    wide = x.astype(np.float64)
    for name, inner, reference in (
        ("log1p", lambda a: call("exp", call("abs", a)), np.log1p(np.exp(np.abs(wide)))),
        ("log1p", lambda a: call("exp", call("neg", a)), np.log1p(np.exp(-wide))),
        ("log1p", lambda a: call("abs", a), np.log1p(np.abs(wide))),
        ("exp", lambda a: call("abs", call("neg", a)), np.exp(np.abs(wide))),
    ):
        got = run_map(lambda a, name=name, inner=inner: call(name, inner(a)), x)
        assert ulps(got, reference) <= 3.0


def test_pow_is_nearly_exact() -> None:
    random = np.random.default_rng(0)
    x = (10.0 ** random.uniform(-30, 30, COUNT)).astype(np.float32)
    y = random.uniform(-5, 5, COUNT).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) ** y.astype(np.float64)
    assert ulps(run_map(lambda a, b: call("pow", a, b), x, y), exact) <= 0.52


def test_cubes_are_two_products() -> None:
    random = np.random.default_rng(0)
    x = (10.0 ** random.uniform(-16, 12, COUNT) * random.choice((-1, 1), COUNT)).astype(np.float32)
    x[:8] = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40]
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) ** 3
    assert ulps(run_map(lambda a: call("pow", a, Literal(3.0, FLOAT32)), x), exact) <= 1.5


def test_pow_special_values() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 1e-40, np.inf, -np.inf, np.nan], np.float32)
    x, y = (grid.ravel().copy() for grid in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    assert ulps(run_map(lambda a, b: call("pow", a, b), x, y), exact) <= 1.0


def test_huge_angles_take_the_slow_path() -> None:
    x = np.array([1e15, 1e16, 3e20, -2e30, 3.4e38, 1.0, 2.0, 3.0, 4.0], np.float32)
    for name, reference in (("sin", math.sin), ("cos", math.cos), ("tan", math.tan)):
        exact = np.array([reference(float(v)) for v in x])
        assert ulps(run_map(lambda a, name=name: call(name, a), x), exact) <= 1.6


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_half_precision_rounds_the_float_result_once(low: str) -> None:
    from kernelgen.tensor.dtypes import dtype

    type_ = dtype(low).numpy
    x = np.linspace(-4, 4, 99).astype(type_)
    got = run_map(lambda a: call("exp", a), x)
    expected = np.exp(x.astype(np.float64)).astype(np.float32).astype(type_)
    different = got.astype(np.float32) != expected.astype(np.float32)
    assert different.sum() <= 1  # a float error of an ulp may cross a tie


def test_atan2() -> None:
    values = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan], np.float32)
    x, y = (grid.ravel().copy() for grid in np.meshgrid(values, values))
    got = run_map(lambda a, b: call("atan2", a, b), x, y)
    np.testing.assert_array_max_ulp(got, np.arctan2(x, y), 1, dtype=FLOAT32.numpy)
