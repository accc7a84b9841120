"""The bounds hold on samples, and a coefficient that is slightly wrong is noticed."""

from __future__ import annotations

import pytest

from kernelgen.targets import coefficients
from kernelgen.targets.cpu.math import exponentials, logarithms
from tests.accuracy.functions import BY_NAME, FUNCTIONS, Function
from tests.accuracy.measure import measured

COUNTS = {"float32": 1 << 14, "float64": 1 << 11}
FITTED = {"EXP": "exp", "EXPM1": "expm1", "LOG": "log", "TANH": "tanh", "ERF_SMALL": "erf", "ERF_LARGE": "erf",
          "ERFC": "erfc", "SINH": "sinh"}  # fmt: skip
BY_TABLES = ("exp", "log", "log1p", "tanh", "erf")
"""Functions that processors with wide vectors look up coefficients for; tests/kernelgen/targets/test_cpu_tables.py."""


@pytest.fixture
def without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other processors do."""
    for module in (exponentials, logarithms):
        monkeypatch.setattr(module, "serve", lambda *_: False)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_bounds(function: Function, kind: str) -> None:
    errors = measured(function, kind, COUNTS.get(kind, 0))
    assert errors.over_bound <= 1, errors
    assert errors.special == 0


@pytest.mark.usefixtures("without_tables")
@pytest.mark.parametrize("name", BY_TABLES)
def test_bounds_of_polynomials(name: str) -> None:
    errors = measured(BY_NAME[name], "float32", COUNTS["float32"])
    assert errors.over_bound <= 1, errors
    assert errors.special == 0


@pytest.mark.usefixtures("without_tables")
@pytest.mark.parametrize("name", FITTED)
def test_a_wrong_coefficient_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = getattr(coefficients, name)
    monkeypatch.setattr(coefficients, name, (first * (1 + 2e-5) + 2e-6, *others))
    assert measured(BY_NAME[FITTED[name]], "float32", 1 << 14).over_bound > 1
