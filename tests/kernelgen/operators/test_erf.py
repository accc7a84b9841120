"""Erf and Erfc against math.erf and math.erfc."""

import math

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers

SIZES = [
    ((7,), "float32"), ((1,), "float32"), ((3, 5), "float32"), ((64,), "float32"), ((2, 3, 17), "float32"), ((0,), "float32"),
    ((), "float32"), ((33,), "float64"), ((33,), "float16"), ((33,), "bfloat16"), ((1000,), "float32"),
]  # fmt: skip


def erf(x):
    return each(math.erf, x)


def each(function, x):
    return np.asarray([function(float(v)) for v in x.ravel()]).reshape(x.shape).astype(x.dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "kind"), SIZES)
def test_erf(shape, kind, target):
    x = numbers(3, shape, kind, -4, 4)
    Case("Erf", (x,), (erf(x),)).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_special_values(kind, target):
    x = np.asarray([0.0, -0.0, math.inf, -math.inf, 1e-30, -1e-8, 5.9, -100.0, 0.5, 1.0], kind)
    Case("Erf", (x,), (erf(x),)).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
def test_nan_stays(target):
    Case("Erf", (np.asarray([math.nan, 1.0], np.float32),), (np.asarray([math.nan, math.erf(1)], np.float32),)).agrees(
        target
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "kind"), SIZES)
def test_erfc(shape, kind, target):
    x = numbers(3, shape, kind, -4, 4)
    Case("Erfc", (x,), (each(math.erfc, x),)).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_special_values_of_erfc(kind, target):
    x = np.asarray([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-30, -1e-8, 5.9, -100.0, 100.0, 0.5, 1.0], kind)
    Case("Erfc", (x,), (each(math.erfc, x),)).agrees(target)
