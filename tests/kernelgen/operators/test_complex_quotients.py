"""Quotients of complex numbers of all magnitudes: right wherever the type holds the quotient, squares or not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from operator_cases import TARGETS, Case, run

import kernelgen
from kernelgen.checker import check
from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.tensor.dtypes import COMPLEX64, FLOAT32

MAGNITUDES = (1e-30, 1e-15, 1.0, 1e15, 1e30)
EVERYWHERE = (*TARGETS, "ascend")
UNITS_OFF = 4 * 2.0**-23
"""Of the size of the quotient."""


def of_magnitude(size: float, seed: int) -> np.ndarray:
    """Both parts near it, one far smaller than the other, either of them 0."""
    random = np.random.default_rng(seed)
    real, imaginary = random.uniform(0.5, 2, (2, 12)) * random.choice([-1, 1], (2, 12)) * size
    real[3:6] *= 1e-6
    imaginary[6:9] *= 1e-6
    real[9], imaginary[10] = 0, 0
    return (real + 1j * imaginary).astype(np.complex64)


def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors of all magnitudes of which float32 holds the quotient."""
    held = [(p, q) for p, q in product(MAGNITUDES, MAGNITUDES) if 1e-31 < p / q < 1e31]
    x, y = zip(*((of_magnitude(p, 2 * k), of_magnitude(q, 2 * k + 1)) for k, (p, q) in enumerate(held)), strict=True)
    return np.concatenate(x), np.concatenate(y)


X, Y = pairs()
UNARY_Y = np.concatenate([of_magnitude(size, 50 + k) for k, size in enumerate(MAGNITUDES)])
REAL = np.abs(Y).astype(np.float32)
CASES = [
    Case("RealDiv", (X, Y), (X,)), Case("Div", (X, Y), (X,)), Case("RealDiv", (X, REAL), (X,)),
    Case("RealDiv", (REAL, Y), (X,)), Case("Reciprocal", (UNARY_Y,), (UNARY_Y,)),
]  # fmt: skip


@pytest.mark.parametrize("target", EVERYWHERE)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_are_small_beside_the_quotient(case: Case, target: str) -> None:
    *dividend, divisor = (array.astype(np.complex128) for array in case.inputs)
    exact = (dividend[0] if dividend else 1) / divisor
    (found,) = run(case.desc, case.inputs, target)
    assert (abs(found - exact) <= UNITS_OFF * abs(exact)).all()


@pytest.mark.parametrize("target", EVERYWHERE)
def test_over_infinity_it_is_nothing(target: str) -> None:
    divisor = np.array([np.inf + 1j, 1 - np.inf * 1j, -np.inf + 0j], np.complex64)
    divisor.real[1] = 1  # the product with 1j made it NaN
    (found,) = run(Case("RealDiv", (X[:3], divisor), (X[:3],)).desc, (X[:3], divisor), target)
    np.testing.assert_array_equal(abs(found), 0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_checker_comes_to_the_same_terms_by_products_of_complex_numbers(case: Case) -> None:
    nest = kernelgen.compile(case.desc, target="cpu").nest
    assert check(nest, case.desc).fault is None


def test_the_checker_tells_a_quotient_from_that_of_the_conjugate() -> None:
    x, y = (Tensor(name, (4,), COMPLEX64) for name in "xy")
    turned = Tensor("z", (4,), COMPLEX64)
    real, imaginary = (Tensor(name, (4,), FLOAT32) for name in ("re", "im"))
    negated = Tensor("minus", (4,), FLOAT32)
    conjugate = (
        Operation("CReal", (y,), (real,)), Operation("CImag", (y,), (imaginary,)),
        Operation("Neg", (imaginary,), (negated,)), Operation("Complex", (real, negated), (turned,)),
    )  # fmt: skip
    found = Tensor("q", (4,), COMPLEX64)
    wrong = linked(Document("k", (x, y), (found,), (*conjugate, Operation("RealDiv", (x, turned), (found,)))))
    right = linked(Document("k", (x, y), (found,), (Operation("RealDiv", (x, y), (found,)),)))
    fault = check(kernelgen.compile(wrong, target="cpu").nest, right).fault
    assert fault is not None
    assert fault.check == "terms"
