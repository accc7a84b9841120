from typing import Any

import kernel_examples as examples
import numpy as np
import pytest
from kernel_examples import Writer, tensor

from kernelgen.tensor.dtypes import FLOAT16, FLOAT32
from kernelgen.verify.compare import HALF, SINGLE, compare, difference, tolerances

NAN, INF = np.nan, np.inf


def faulty(found: object, expected: object, dtype: object = np.float32) -> str:
    return difference(array(found, dtype), array(expected, dtype), SINGLE).fault


def array(values: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(values, dtype)


@pytest.mark.parametrize(
    ("found", "expected"),
    [([1.0], [1.00005]), ([NAN, INF, -INF], [NAN, INF, -INF]), ([0.0], [-0.0]), ([], [])],
)
def test_close_results_pass(found, expected):
    assert not faulty(found, expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([1.0], [1.001]),
        ([NAN], [1.0]),
        ([1.0], [NAN]),
        ([INF], [-INF]),
        ([1e38], [INF]),
        ([INF], [1e38]),
        ([[1.0]], [1.0]),
    ],
)
def test_wrong_results_are_found(found, expected):
    assert faulty(found, expected)


def test_integers_and_bools_must_be_equal():
    assert faulty([1000], [1001], dtype=np.int32)
    assert faulty([True], [False], dtype=bool)


def test_complex_numbers_are_compared():
    assert faulty([1 + 1j], [1 + 1.1j], dtype=np.complex64)
    assert not faulty([1 + 1j], [1 + 1.00001j], dtype=np.complex64)


def test_the_fault_names_the_first_place_and_the_count():
    fault = faulty([[1.0, 2.0], [3.0, 4.0]], [[1.0, 5.0], [3.0, 6.0]])
    assert fault == "2 of 4 elements differ, first at [0, 1]: 2.0, expected 5.0"


def test_the_error_is_the_largest_difference():
    assert difference(array([1, 2, NAN]), array([1.5, 2.25, NAN]), 1.0).error == 0.5


def test_half_precision_anywhere_in_the_derivation_loosens():
    w, x, h = Writer(), tensor("x", 3), tensor("h", 3, dtype=FLOAT16)
    wide = w.op("Cast", h, shape=(3,), dtype=FLOAT32)
    mixed, pure = w.op("Add", wide, x, shape=(3,)), w.op("Neg", x, shape=(3,))
    allowed = tolerances(w.desc("k", (x, h), mixed, pure))
    assert (allowed[mixed.name], allowed[pure.name]) == (HALF, SINGLE)


def test_the_worst_result_counts():
    desc, good, bad = examples.momentum(), np.zeros(37, np.float32), np.ones(37, np.float32)
    found = compare(desc, [desc.outputs[0].name, "p"], [good, good], [good, bad])
    assert found.error == 1
    assert found.fault.startswith("p: 37 of 37")
