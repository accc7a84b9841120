from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from graphkernel.report.difference import largest_difference, summary, typed

WORDS = np.array(["one", "two"], object)
A = np.array([1.0, -2.0, np.inf, np.nan], np.float32)


def test_equal_results_differ_by_nothing() -> None:
    assert largest_difference(A, A.copy()) == 0.0
    assert largest_difference(np.zeros(0), np.zeros(0)) == 0.0


def test_difference_is_relative_to_the_largest_value() -> None:
    assert largest_difference(A + np.array([0, 0.5, 0, 0], np.float32), A) == 0.25
    assert largest_difference(np.ones(2), np.zeros(2)) > 1e300


@pytest.mark.parametrize("other", [
    np.array([1.0, -2.0, -np.inf, np.nan], np.float32),
    np.array([1.0, -2.0, np.inf, 0.0], np.float32),
    np.array([np.nan, -2.0, np.inf, np.nan], np.float32),
    A.astype(np.float64),
    A[:3],
])  # fmt: skip
def test_what_cannot_be_compared_is_infinitely_far(other: np.ndarray) -> None:
    assert largest_difference(other, A) == np.inf


def test_summary_is_short() -> None:
    assert summary(np.array([1.0, 2.0, 6.0])) == "min 1, mean 3, max 6"
    assert summary(np.zeros((0, 3))) == "no elements"


@pytest.mark.parametrize("value", [WORDS, [A, A[:2]], [], None, [{"a": 1.0, "b": 2.0}], {"a": [A]}, [None, [WORDS]]])
def test_what_is_no_array_is_compared_entry_by_entry(value: Any) -> None:
    assert largest_difference(value, deepcopy(value)) == 0.0


@pytest.mark.parametrize(("one", "other"), [
    (WORDS, WORDS[::-1]), (WORDS, WORDS[:1]), ([A, A], [A]), ([A], A), ([A], None), (None, A), ({"a": A}, {"b": A}),
    ([WORDS], [A]), ([[A]], [[A.astype(np.float64)]]),
])  # fmt: skip
def test_values_built_otherwise_are_infinitely_far(one: Any, other: Any) -> None:
    assert largest_difference(one, other) == np.inf
    assert largest_difference(other, one) == np.inf


def test_the_difference_of_lists_is_that_of_the_worst_entry() -> None:
    assert largest_difference([{"a": 2.0}, {"a": np.float64(4)}], [{"a": 2.0}, {"a": np.float64(5)}]) == 0.2


@pytest.mark.parametrize(("value", "said"), [
    (WORDS, ("string[2]", "first 'one'")), ([A, A], ("list of 2", "first float32[4]")), (None, ("nothing", "")),
    ({"a": 1.5}, ("dict of 1", "first 1.5")),
])  # fmt: skip
def test_what_is_no_array_is_told_in_a_word(value: Any, said: tuple[str, str]) -> None:
    assert (typed(value), summary(value)) == said
