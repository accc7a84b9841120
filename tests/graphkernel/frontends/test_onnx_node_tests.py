"""ONNX's own operator tests: a quarter at level 2, all with `make test-long`; ``python -m tests.onnx_node_tests`` at each."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.onnx_node_tests.cases import NodeCase, node_cases
from tests.onnx_node_tests.check import Kind, check, fault_of
from tests.onnx_node_tests.opinion import Agrees, excuse

pytestmark = pytest.mark.usefixtures("shared_kernels")

EVERY = 20
SHARES = 8
"""Of all cases at level 2, so that several processes share them."""


@cache
def cases() -> dict[str, NodeCase]:
    return {case.name: case for case in node_cases()}


@pytest.mark.parametrize(
    ("level", "first", "step"),
    [
        *(pytest.param(2, share, SHARES, marks=pytest.mark.long if share % 4 else ()) for share in range(SHARES)),
        *((level, 13 + level, EVERY) for level in (0, 1, 3)),
    ],
)
def test_every_case_is_right_or_refused(level: int, first: int, step: int) -> None:
    outcomes = {name: check(case, level) for name, case in list(cases().items())[first::step]}
    assert {name: o.message for name, o in outcomes.items() if o.kind in (Kind.WRONG, Kind.INTERNAL)} == {}
    assert sum(outcome.kind is Kind.PASSED for outcome in outcomes.values()) > len(outcomes) // 2


def test_an_answer_that_nobody_shares_is_wrong() -> None:
    case = cases()["test_add"]
    ((inputs, (right,)),) = case.data_sets
    expected = [np.asarray(right) + 1]
    assert fault_of([np.asarray(right)], expected, case).startswith("result 0: 60 of 60 elements differ")
    assert fault_of([np.asarray(right)], [np.asarray(right, np.float64)], case) == "result 0: float32, expected float64"
    assert excuse(case, inputs, [right], expected, agrees(case)) == "onnxruntime gives the same"
    assert excuse(case, inputs, [np.asarray(right) + 2], expected, agrees(case)) == ""


def agrees(case: NodeCase) -> Agrees:
    return lambda found, expected: not fault_of(found, expected, case)


def test_a_random_answer_is_compared_by_shape_alone() -> None:
    """Numbers that are made up, since those that are drawn may be the expected ones."""
    case = cases()["test_bernoulli"]
    ((inputs, (drawn,)),) = case.data_sets
    expected = [np.asarray(drawn)]
    assert excuse(case, inputs, [1 - expected[0]], expected, agrees(case)) == "the operator is random"
    assert excuse(case, inputs, [expected[0][1:]], expected, agrees(case)) != "the operator is random"
    assert check(case, 2).kind in (Kind.PASSED, Kind.EXCUSED)
