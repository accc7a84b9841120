"""CumSum and CumProd against loops in Python numbers."""

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers


def scanned(name, x, axis, exclusive, reverse):
    """Running totals along an axis, one element after another."""
    moved = np.moveaxis(x, axis, -1)
    result = np.empty_like(moved)
    for row in np.ndindex(moved.shape[:-1]):
        total = 0.0 if name == "CumSum" else 1.0
        order = range(moved.shape[-1])
        for k in reversed(order) if reverse else order:
            after = total + float(moved[row][k]) if name == "CumSum" else total * float(moved[row][k])
            result[(*row, k)] = total if exclusive else after
            total = after
    return np.ascontiguousarray(np.moveaxis(result, -1, axis))


# shape, axis, data type
SIZES = [
    ((7,), 0, "float32"), ((1,), 0, "float32"), ((3, 5), 1, "float32"), ((3, 5), 0, "float32"), ((2, 3, 4), -2, "float32"),
    ((17, 31), -1, "float32"), ((4, 0), 1, "float32"), ((0, 4), 1, "float32"), ((5, 6), 0, "float64"),
    ((5, 6), 1, "int32"), ((2, 9), 1, "float16"), ((2, 9), 1, "bfloat16"), ((2, 1, 3, 1, 4), 2, "float32"),
]  # fmt: skip


def cases():
    for name in ("CumSum", "CumProd"):
        for number, (shape, axis, kind) in enumerate(SIZES):
            exclusive, reverse = ((False, False), (True, False), (False, True), (True, True))[number % 4]
            x = numbers(number, shape, kind, -1.5, 1.5)
            attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
            loose = {"float16": 1e-2, "bfloat16": 0.1}.get(kind)
            yield Case(name, (x,), (scanned(name, x, axis, exclusive, reverse),), attrs, tolerance=loose)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*cases()], ids=str)
def test_scans(case, target):
    case.agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_running_sum_of_ones_counts(target, exclusive, reverse):
    count = np.arange(10, dtype=np.int32) + (0 if exclusive else 1)
    attrs = {"axis": 0, "exclusive": exclusive, "reverse": reverse}
    Case("CumSum", (np.ones(10, np.int32),), (count[::-1].copy() if reverse else count,), attrs).agrees(target)
