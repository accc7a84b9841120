from __future__ import annotations

import numpy as np
import pytest

from graphkernel.report.difference import largest_difference, summary

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
