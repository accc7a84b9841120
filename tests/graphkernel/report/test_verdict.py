"""Results that are further apart than a tolerance are held against float64: rounding is no difference, and a fault is."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.report.verdict import Judge, verdicts
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.evaluation.widened import evaluate_wide

X = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)


def cancelling(x: Any) -> Any:
    """The small difference of large numbers: float32 keeps three digits of it."""
    return ops.sub(ops.add(x, 10000.0), 10000.0)


GRAPH = gk.trace(cancelling, gk.spec(X.shape))


def judged(found: np.ndarray, expected: np.ndarray, is_independent: bool = False) -> tuple[bool, bool]:
    """Whether it is good, and whether float64 was asked."""
    asked: list[Judge] = []

    def judge() -> Judge:
        asked.append(Judge.of(GRAPH, [X]))
        return asked[0]

    (verdict,) = verdicts([found], [expected], judge, 1e-6, is_independent)
    return verdict.is_good, bool(asked)


def test_results_within_the_tolerance_need_no_judge() -> None:
    assert judged(X, X) == (True, False)


def test_two_roundings_of_one_result_are_both_good() -> None:
    (rounded,) = evaluate(GRAPH, [X])
    assert np.abs(rounded - X).max() > 1e-4
    assert judged(rounded, X) == judged(X, rounded) == (True, True)


@pytest.mark.parametrize("wrong", [X * 1.5, X + 1.0, np.where(X[0, 0] == X, np.nan, X)])
def test_more_than_rounding_is_a_difference(wrong: np.ndarray) -> None:
    (rounded,) = evaluate(GRAPH, [X])
    given = wrong.astype(np.float32)
    assert judged(given, rounded) == (False, True)
    assert judged(rounded, given, is_independent=True) == (False, True)


def test_what_the_same_graph_gives_elsewhere_may_be_worse_but_no_other_type() -> None:
    (rounded,) = evaluate(GRAPH, [X])
    assert judged(rounded, (X * 1.05).astype(np.float32)) == (True, True)
    assert judged(rounded, X.astype(np.float64)) == (False, True)


def test_somebody_else_may_round_more_coarsely_next_to_zero() -> None:
    graph = gk.trace(lambda x: ops.mul(x, 1e-7), gk.spec(X.shape))
    (tiny,) = evaluate(graph, [X])
    for other, is_good in ((tiny * np.float32(1.02), True), (tiny + np.float32(1e-5), False)):
        (verdict,) = verdicts([tiny], [other], lambda: Judge.of(graph, [X]), 1e-6, is_independent=True)
        assert verdict.is_good is is_good


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_every_operator_computes_in_float64(name: str) -> None:
    narrow = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    graph = gk.trace(lambda x: ops.cast(ops.exp(ops.mul(x, x)), dst_type=name), gk.spec(X.shape, name))
    given = X.astype(narrow)
    (wide,) = evaluate_wide(graph, [given])
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide, np.exp(given.astype(np.float64) ** 2), rtol=1e-14)


def test_integers_and_truths_stay_what_they_are() -> None:
    graph = gk.trace(lambda x: (ops.greater(x, 0.0), ops.cast(x, dst_type="int32")), gk.spec(X.shape))
    truths, whole = evaluate_wide(graph, [X])
    assert (truths.dtype, whole.dtype) == (np.bool_, np.int32)
    assert np.array_equal(truths, X > 0)


def test_fused_operators_are_computed_wide_as_well() -> None:
    (fused,) = evaluate_wide(gk.optimize(GRAPH), [X])
    np.testing.assert_allclose(fused, X, atol=1e-11)
