"""Quotients by a literal that are rounded next are those of a division, to the last bit, without one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kernelgen.nest.nodes import Literal
from kernelgen.targets.cpu.math.known_divisors import BITS, near_middles, reciprocal
from kernelgen.tensor.dtypes import FLOAT32
from tests.support.nests import call, run_map

DRAWN = [float(x) for x in np.exp(np.random.default_rng(0).uniform(-8, 3, 40)).astype(np.float32)]
DIVISORS = [x for x in DRAWN if reciprocal(x) is not None]


@pytest.mark.parametrize("divisor", [0.25, 3.0, -0.0213831998, *DIVISORS])
def test_both_halves_make_the_quotient_of_every_significand_exact(divisor: float) -> None:
    divisor = float(np.float32(divisor))
    halves = reciprocal(divisor)
    assert halves is not None
    high, low = map(np.float32, halves)
    assert (float(high), float(low)) == halves
    x = np.random.default_rng(1).integers(1 << 23, 1 << 24, 1 << 18).astype(np.float32)
    exact = x.astype(np.longdouble) * np.longdouble(high) + (x * low).astype(np.longdouble)
    assert np.array_equal(exact.astype(np.float32), x / np.float32(divisor))


def test_few_divisors_need_a_division() -> None:
    assert len(DIVISORS) >= 0.9 * len(DRAWN)


@pytest.mark.parametrize("divisor", [float("inf"), float("-inf"), float("nan"), 0.0])
def test_no_product_stands_for_a_quotient_by_what_is_no_number_or_none(divisor: float) -> None:
    assert reciprocal(divisor) is None


def test_the_quotients_that_are_tried_are_those_near_a_middle() -> None:
    divisor = 12582917
    near = set(near_middles(divisor))
    assert near
    for x in near:
        shift = BITS if x >= divisor else BITS + 1
        assert abs(Fraction(x << shift) - round(Fraction(x << shift, divisor)) * divisor) <= 8


@pytest.mark.parametrize("divisor", [0.25, 3.0, -0.0213831998, 1e-30])
def test_kernels_round_what_a_division_gives(divisor: float) -> None:
    divisor = float(np.float32(divisor))
    halfway = (np.arange(-300, 300) + 0.5) * divisor
    around = [np.nextafter(halfway.astype(np.float32), np.float32(to)) for to in (-np.inf, 0, np.inf)]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-38], np.float32)
    x = np.concatenate([halfway.astype(np.float32), *around, special])
    with np.errstate(all="ignore"):
        expected = np.rint(x / np.float32(divisor))
    got = run_map(lambda a: call("round", call("div", a, Literal(divisor, FLOAT32))), x)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
