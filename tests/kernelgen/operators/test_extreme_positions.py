"""Argmax and Argmin against a walk over every row: the first extreme, or the first NaN, wins."""

import math

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers


def position(name, row):
    best = 0
    for k, value in enumerate(row):
        if math.isnan(row[best]):
            return best
        if math.isnan(value) or (value > row[best] if name == "Argmax" else value < row[best]):
            best = k
    return best


def positions(name, x, axis, kind):
    moved = np.moveaxis(x, axis, -1)
    result = np.empty(moved.shape[:-1], kind)
    for place in np.ndindex(result.shape):
        result[place] = position(name, [float(v) for v in moved[place]])
    return result


# shape, axis, data type of the operand, of the result
SIZES = [
    ((7,), 0, "float32", "int32"), ((1,), 0, "float32", "int32"), ((3, 5), 1, "float32", "int32"),
    ((3, 5), 0, "float32", "int64"), ((2, 3, 4), -2, "float32", "int32"), ((17, 31), -1, "float32", "int32"),
    ((0, 4), 1, "float32", "int32"), ((5, 6), 0, "float64", "int32"), ((5, 6), 1, "int32", "int32"),
    ((2, 9), 1, "float16", "int32"), ((2, 9), 1, "bfloat16", "int32"), ((2, 9), 1, "uint8", "int64"),
    ((2, 1, 3, 1, 4), 2, "float32", "int32"),
]  # fmt: skip


def cases():
    for name in ("Argmax", "Argmin"):
        for number, (shape, axis, kind, result) in enumerate(SIZES):
            x = numbers(number, shape, kind, 0 if kind == "uint8" else -2)
            yield Case(name, (x,), (positions(name, x, axis, result),), {"axis": axis})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*cases()], ids=str)
def test_positions(case, target):
    case.agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["Argmax", "Argmin"])
@pytest.mark.parametrize("row", [
    (1.0, 1.0, 1.0), (2.0, math.nan, 3.0), (math.nan, math.nan, 0.0), (-math.inf, -math.inf, -math.inf),
    (math.inf, 1.0, math.inf), (0.0, -0.0, 0.0), (1.0, -math.inf, math.nan),
], ids=str)  # fmt: skip
def test_ties_and_special_values(name, row, target):
    x = np.asarray([row, row[::-1]], np.float32)
    Case(name, (x,), (positions(name, x, 1, "int32"),), {"axis": 1}).agrees(target)
