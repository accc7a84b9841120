"""What single rules say of ranges, at the borders where they must say less, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from operator_kernels import one

from kernelgen.enclosure import agree, conditions, functions, integers
from kernelgen.enclosure import arithmetic as ar
from kernelgen.enclosure.interval import Interval, forgotten, settled
from kernelgen.enclosure.rounding import LARGEST, TINY, UNIT, inexact, rounded
from kernelgen.enclosure.sums import summed
from kernelgen.enclosure.table import RULES
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT8, INT64
from kernelgen.tensor.operators.elemwise import IS_FINITE, IS_INF, IS_NAN, TAN

NAN, INF = np.nan, np.inf


@pytest.fixture(autouse=True)
def as_in_a_graph() -> Iterator[None]:
    """Rules run where numpy says nothing of what overflows."""
    with np.errstate(all="ignore"):
        yield


def between(*ends: tuple[float, float]) -> Interval:
    """Ranges of floats."""
    low, high = zip(*ends, strict=True)
    return Interval(np.asarray(low, np.float64), np.asarray(high, np.float64))


def whole(kind: type, *ends: tuple[int, int]) -> Interval:
    low, high = zip(*ends, strict=True)
    return Interval(np.asarray(low, kind), np.asarray(high, kind))


def exactly(*values: float) -> Interval:
    return Interval.exact(np.asarray(values, np.float64))


def ends(found: Interval) -> list[tuple[Any, Any]]:
    return list(zip(found.low.tolist(), found.high.tolist(), strict=True))


def by_rule(name: str, kind: str, operands: Sequence[Interval], out: tuple[int, ...], **attrs: Any) -> Interval:
    """What the rule of an operator makes of ranges."""
    (node,) = one(name, [(kind, x.low.shape) for x in operands], [(attrs.pop("to", kind), out)], **attrs).operators
    found = RULES[node.op](operands, node)
    assert isinstance(found, Interval)
    return found


ANYTHING = (-INF, INF)


def test_nan_of_exact_operands_is_certain_and_of_others_is_not() -> None:
    x, y = between((INF, INF), (1, INF), (NAN, NAN)), between((-INF, -INF), (-INF, -INF), (1, 2))
    low, high = x.low + y.low, x.high + y.high
    found = settled(low, high, x, y)
    assert np.isnan([found.low[0], found.high[0]]).all()
    assert ends(found)[1:] == [ANYTHING, ANYTHING]


def test_what_is_forgotten_may_be_anything_on_both_sides() -> None:
    assert ends(forgotten(between((1, 2), (3, 4)), np.asarray([True, False]))) == [ANYTHING, (3, 4)]


def test_a_product_beyond_the_largest_number_may_be_kept_by_the_sum_behind_it() -> None:
    beyond = exactly(2 * LARGEST[FLOAT32])
    assert ends(rounded(beyond, FLOAT32)) == [(INF, INF)]
    assert ends(rounded(beyond, FLOAT32, is_fused=True)) == [(2 * LARGEST[FLOAT32], INF)]
    assert ends(ar.multiply(exactly(LARGEST[FLOAT32]), exactly(2), FLOAT32)) == [(2 * LARGEST[FLOAT32], INF)]


@pytest.mark.parametrize("kind", [FLOAT32, BFLOAT16], ids=str)
def test_an_inexact_subnormal_number_may_be_some_of_the_smallest_off(kind: Any) -> None:
    small = 4 * TINY[kind]
    (low, high), (zero, also) = ends(inexact(exactly(small, 0), kind, 2))
    assert (low, high) == (
        small - 2 * TINY[kind] - 2 * UNIT[kind] * small,
        small + 2 * TINY[kind] + 2 * UNIT[kind] * small,
    )
    assert zero == also == 0


def test_a_sum_of_infinities_that_may_be_there_may_be_nan() -> None:
    def add_up(x: Any) -> Any:
        return x.sum(-1)

    either = Interval(np.asarray([[1.0, -INF]]), np.asarray([[INF, -INF]]))
    assert ends(summed(either, add_up, FLOAT32, 2)) == [ANYTHING]
    certain = summed(Interval.exact(np.asarray([[INF, -INF]])), add_up, FLOAT32, 2)
    assert np.isnan(certain.low).all()


@pytest.mark.parametrize("terms", [4, 10_000])
def test_a_sum_may_lose_half_a_unit_of_its_terms_for_each_or_six_roots_of_them(terms: int) -> None:
    x = np.full((1, terms), 1 / 3)
    found = summed(Interval.exact(x), lambda values: values.sum(-1), FLOAT64, terms)
    lost = min(terms, 6 * terms**0.5) * UNIT[FLOAT64] / 2 * x.sum()
    assert found.low[0] <= x.sum() - lost
    assert x.sum() - 1.1 * lost - 3 * UNIT[FLOAT64] * x.sum() <= found.low[0]
    assert found.high[0] >= x.sum() + lost


def test_a_quotient_by_what_may_be_zero_may_be_anything() -> None:
    found = ar.divide(exactly(1, 1, 1), between((-1, 2), (0, 2), (1, 2)), FLOAT32)
    assert ends(found) == [ANYTHING, ANYTHING, (0.5, 1)]


def test_the_size_of_a_range_around_zero_begins_at_zero() -> None:
    assert ends(ar.absolute(between((-3, 2), (-3, -2), (2, 3), (-1, 4)))) == [(0, 3), (2, 3), (2, 3), (0, 4)]


def test_a_remainder_is_known_where_the_whole_quotient_is() -> None:
    x = between((6.5, 7.5), (4.25, 4.5))
    for floored in (False, True):
        found = ar.remainder(x, exactly(7, 4), floored, FLOAT32)
        assert ends(found)[0] == ANYTHING
        assert ends(found)[1] == (0.25, 0.5)


def test_ranges_that_touch_may_be_equal() -> None:
    found = conditions.equal(between((1, 2), (1, 2), (1, 2)), between((2, 3), (0, 1), (2.5, 3)))
    assert ends(found) == [(False, True), (False, True), (False, False)]
    assert ends(conditions.inverted(found)) == [(False, True), (False, True), (True, True)]
    assert ends(conditions.less_equal(between((2, 3)), between((1, 2)))) == [(False, True)]
    assert ends(conditions.less(between((2, 3)), between((1, 2)))) == [(False, False)]


@pytest.mark.parametrize("op", [IS_NAN, IS_INF, IS_FINITE], ids=lambda op: op.name)
def test_of_what_may_be_anything_no_test_is_certain(op: Any) -> None:
    assert ends(conditions.test(op, between(ANYTHING, (1, 2)))) == [(False, True), (op is IS_FINITE, op is IS_FINITE)]


def test_a_choice_of_nan_or_a_number_may_be_anything_and_of_two_nan_is_nan() -> None:
    either = Interval(np.asarray([False, False, False]), np.asarray([True, True, True]))
    found = conditions.select(either, between((NAN, NAN), (1, 1), (NAN, NAN)), between((1, 2), (3, 4), (NAN, NAN)))
    assert ends(found)[:2] == [ANYTHING, (1, 4)]
    assert np.isnan([found.low[2], found.high[2]]).all()


def test_waves_move_as_far_as_their_operand_and_stay_between_minus_one_and_one() -> None:
    found = functions._wave(np.sin, between((0.4, 0.6), (0, 100)))
    (low, high), full = ends(found)
    assert (low, high) == pytest.approx((np.sin(0.5) - 0.1, np.sin(0.5) + 0.1))
    assert full == (-1, 1)


def test_a_tangent_over_a_pole_may_be_anything() -> None:
    found = functions.function(TAN, between((1.5, 1.6), (-0.5, 0.5), (1.6, 1.7)), FLOAT32)
    assert ends(found)[0] == ANYTHING
    assert (np.abs(found.low[1:]) < 50).all()


def test_powers_of_what_may_be_zero_or_negative() -> None:
    x = between((0, 1), (-2, -1), (-2, -1), (-1, 2))
    found = functions.power(x, exactly(-1, 0.5, 3, 2), FLOAT32)
    assert ends(found)[:2] == [ANYTHING, ANYTHING]
    assert found.low[2] < -7.99
    assert found.high[2] > -1.01
    assert found.low[3] <= 0
    assert found.high[3] >= 4


def test_an_angle_beside_the_cut_may_be_any() -> None:
    found = functions.angle(between((-1, 1), (-1, 1), (0.5, 1)), between((-2, -1), (1, 2), (-2, -1)), FLOAT32)
    assert ends(found)[0] == ANYTHING
    assert (np.abs([found.low[1:], found.high[1:]]) < 3.2).all()


def test_whole_numbers_beyond_float64_are_known_alone() -> None:
    large = 2**53 + 1
    found = integers.on_integers(np.add, [whole(np.int64, (large, large + 2)), whole(np.int64, (0, 0))], INT64)
    info = np.iinfo(np.int64)
    assert ends(found) == [(info.min, info.max)]
    near = integers.on_integers(np.add, [whole(np.int64, (5, 7)), whole(np.int64, (0, 1))], INT64)
    assert ends(near) == [(5, 8)]


def test_integers_that_wrap_around_in_a_narrow_type_may_be_any_of_it() -> None:
    found = integers.as_integers(whole(np.int32, (100, 200), (1, 2), (300, 300)), INT8)
    assert ends(found) == [(-128, 127), (1, 2), (44, 44)]


def test_remainders_of_a_range_may_be_any() -> None:
    found = by_rule("FloorMod", "int32", [whole(np.int32, (3, 5), (3, 3)), whole(np.int32, (4, 4), (4, 4))], (2,))
    info = np.iinfo(np.int32)
    assert ends(found) == [(info.min, info.max), (3, 3)]


def test_squares_and_sizes_of_integers_turn_at_zero() -> None:
    info = np.iinfo(np.int32)
    for name, beyond in (("Square", (4, 9)), ("Abs", (2, 3))):
        found = by_rule(name, "int32", [whole(np.int32, (-3, 3), (-3, -2), (0, 0))], (3,))
        assert ends(found) == [(info.min, info.max), beyond, (0, 0)]


def test_the_first_place_of_a_tie_that_rounding_may_break_is_any_of_them() -> None:
    x = Interval(np.asarray([[1.0, 2, 1]]), np.asarray([[2.0, 3, 2]]))
    assert ends(by_rule("Argmax", "float32", [x], (1,), axis=(1,), to="int32")) == [(0, 2)]
    apart = Interval(np.asarray([[1.0, 2.5, 1]]), np.asarray([[2.0, 3, 2]]))
    assert ends(by_rule("Argmax", "float32", [apart], (1,), axis=(1,), to="int32")) == [(1, 1)]
    assert ends(by_rule("Argmin", "float32", [apart], (1,), axis=(1,), to="int32")) == [(0, 2)]


def test_the_largest_of_a_window_with_something_unknown_is_unknown() -> None:
    x = Interval(np.asarray([[[[1.0, -INF, 3, 4]]]]), np.asarray([[[[1.0, INF, 3, 4]]]]))
    attrs = {"pool_type": "max", "kernel_size": (1, 2), "strides": (1, 2), "pad": (0, 0, 0, 0), "round_mode": "floor"}
    found = by_rule("Pool2D", "float32", [x], (1, 1, 1, 2), everywhere=False, data_layout="NCHW", **attrs)
    assert [(low, high) for low, high in zip(found.low.ravel(), found.high.ravel(), strict=True)] == [ANYTHING, (4, 4)]


def test_nan_agrees_with_nan_alone() -> None:
    wanted = [between((NAN, NAN), (1, 2))]
    assert not agree(["y"], [np.asarray([NAN, 1.5], np.float32)], wanted).fault
    assert "1 of 2" in agree(["y"], [np.asarray([1, 1.5], np.float32)], wanted).fault
    assert "1 of 2" in agree(["y"], [np.asarray([NAN, NAN], np.float32)], wanted).fault
