"""CSR operators against loops over the dense matrix that the stored elements make up."""

from itertools import pairwise

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers


def matrix(seed, rows, columns, count):
    """Row starts, and columns; rows may be empty and columns may repeat in a row."""
    random = np.random.default_rng(seed)
    cuts = np.sort(random.integers(0, count + 1, rows - 1))
    starts = np.asarray([0, *cuts, count], np.int32)
    return starts, random.integers(0, columns, count).astype(np.int32)


def stored(starts, columns):
    """(number of the stored element, its row, its column)."""
    for row, (first, last) in enumerate(pairwise(starts.tolist())):
        for k in range(first, last):
            yield k, row, int(columns[k])


# rows, columns, stored elements, data type
SIZES = [
    (3, 4, 5, "float32"), (1, 1, 1, "float32"), (1, 7, 9, "float32"), (7, 1, 3, "float32"), (5, 5, 0, "float32"),
    (17, 13, 40, "float32"), (64, 3, 20, "float32"), (4, 6, 11, "float16"), (4, 6, 11, "bfloat16"),
    (4, 6, 11, "float64"), (4, 6, 11, "int32"), (2, 31, 100, "float32"),
]  # fmt: skip
PLACES = [(number, *size) for number, size in enumerate(SIZES)]


def laid_over(shape, number):
    """Dense operands of every shape that broadcasts to the matrix."""
    rows, columns = shape
    return ((rows, columns), (1, columns), (rows, 1), (columns,))[number % 4]


def elementwise(name):
    for number, rows, columns, count, kind in PLACES:
        starts, places = matrix(number, rows, columns, count)
        values = numbers(number, (count,), kind)
        low = 1 if name == "CSRDiv" else -2
        dense = numbers(number + 50, laid_over((rows, columns), number), kind, low, 3)
        full = np.broadcast_to(dense, (rows, columns)).astype(np.float64)
        wide = values.astype(np.float64)
        found = [
            wide[k] * full[r, c] if name == "CSRMul" else wide[k] / full[r, c] for k, r, c in stored(starts, places)
        ]
        expected = np.trunc(found) if kind == "int32" else np.asarray(found)
        attrs = {"dense_shape": (rows, columns)}
        yield Case(name, (starts, places, values, dense), (expected.astype(values.dtype),), attrs)


def sums():
    for number, rows, columns, count, kind in PLACES:
        starts, places = matrix(number, rows, columns, count)
        values = numbers(number, (count,), kind)
        expected = np.zeros((rows, 1))
        for k, row, _ in stored(starts, places):
            expected[row, 0] += float(values[k])
        attrs = {"dense_shape": (rows, columns), "axis": 1}
        yield Case(
            "CSRReduceSum", (starts, places, values), (expected.astype(values.dtype),), attrs, tolerance=_loose(kind)
        )


def products(name):
    for number, rows, columns, count, kind in PLACES:
        starts, places = matrix(number, rows, columns, count)
        values = numbers(number, (count,), kind)
        dense = numbers(number + 50, (columns, 1 if name == "CSRMV" else 1 + number % 5), kind)
        expected = np.zeros((rows, dense.shape[1]))
        for k, row, column in stored(starts, places):
            for j in range(dense.shape[1]):
                expected[row, j] += float(values[k]) * float(dense[column, j])
        attrs = {"dense_shape": (rows, columns)}
        yield Case(
            name, (starts, places, values, dense), (expected.astype(values.dtype),), attrs, tolerance=_loose(kind)
        )


def gathers():
    for number, rows, columns, count, kind in PLACES:
        starts, places = matrix(number, rows, columns, count)
        dense = numbers(number, (rows, columns, *((2,) if number % 3 == 2 else ())), kind)
        found = [dense[r, c] for _, r, c in stored(starts, places)]
        expected = np.asarray(found, dense.dtype).reshape(count, *dense.shape[2:])
        yield Case("CSRGather", (starts, places, dense), (expected,), {"dense_shape": (rows, columns)})


def conversions():
    for number, rows, columns, count, _ in PLACES:
        starts, places = matrix(number, rows, columns, count)
        numbers_of_rows = np.asarray([row for _, row, _ in stored(starts, places)], np.int32)
        yield Case("CSR2COO", (starts,), (numbers_of_rows,), {"nnz": count})
        yield Case("COO2CSR", (numbers_of_rows,), (starts,), {"height": rows})


def _loose(kind):
    """Sums in half precision may be rounded at every step."""
    return {"float16": 2e-2, "bfloat16": 0.2}.get(kind)


CASES = [
    *elementwise("CSRMul"), *elementwise("CSRDiv"), *sums(), *products("CSRMV"), *products("CSRMM"), *gathers(),
    *conversions(),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_csr(case, target):
    case.agrees(target)
