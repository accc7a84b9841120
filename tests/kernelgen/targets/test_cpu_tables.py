"""Functions whose coefficients are looked up in registers: errors, special values, equal bits, and who looks up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.math import exponentials, logarithms, tables
from kernelgen.targets.cpu.math.register_tables import LANES, LOOK_UP
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.tensor.dtypes import FLOAT32
from tests.support.hosts import HOSTS
from tests.support.nests import call, map_nest, run_map

HERE = detect_host()
WIDE = replace(HERE, features=HERE.features | {"avx512f", "avx512bw", "avx512vl", "avx512vbmi2", "avx2", "fma"})
needs_tables = pytest.mark.skipif(not HERE.keeps_tables, reason="this processor has no vectors of 16 floats")

Reference = Callable[[np.ndarray], np.ndarray]
FUNCTIONS: dict[str, tuple[float, float, float, Reference]] = {
    "exp": (-104, 89, 1.05, np.exp), "log": (1e-3, 4, 1.05, np.log), "log1p": (-0.9999, 4, 1.25, np.log1p),
    "tanh": (-9.5, 9.5, 1.05, np.tanh), "erf": (-4.2, 4.2, 1.3, np.vectorize(math.erf, otypes=[np.float64])),
}  # fmt: skip
"""Where each varies, its largest error in units in the last place, and what it is."""
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 1.5, 0.75, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40, -1e-40], np.float32)


def worst(name: str, x: np.ndarray) -> float:
    """The largest error in units in the last place; NaN, infinities and signs of zeros must agree."""
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name][3](x.astype(np.float64))
        rounded = exact.astype(np.float32)
        got = run_map(lambda a: call(name, a), x)
    usual = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~usual], rounded[~usual])
    zeros = usual & (exact == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))
    _, exponents = np.frexp(np.maximum(np.abs(exact[usual]), 2.0**-126))
    return float((np.abs(got[usual] - exact[usual]) / np.ldexp(1.0, exponents - 24)).max())


def evenly(name: str, count: int) -> np.ndarray:
    low, high, *_ = FUNCTIONS[name]
    return np.linspace(low, high, count).astype(np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_small_for_floats_of_every_exponent(name: str) -> None:
    every = np.arange(0, 1 << 32, 20011, dtype=np.uint64).astype(np.uint32).view(np.float32)
    bound = FUNCTIONS[name][2] if HERE.keeps_tables else 1.6
    assert worst(name, np.concatenate([evenly(name, 1 << 19), evenly(name, 1 << 17) / 16, every, SPECIAL])) <= bound


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 31])
def test_a_float_has_the_same_bits_wherever_it_lies(name: str, size: int) -> None:
    x = np.concatenate([evenly(name, 48), SPECIAL])
    whole = run_map(lambda a: call(name, a), x).view(np.uint32)
    for start in (0, 16, 45):
        part = run_map(lambda a: call(name, a), x[start : start + size].copy()).view(np.uint32)
        np.testing.assert_array_equal(part, whole[start : start + size])


ROWS = [(name, k) for name in ("POWERS", "LOG_FACTOR", "LOG_START", "ERF", "TANH") for k in range(LANES)]


@needs_tables
@pytest.mark.parametrize(("name", "column"), ROWS)
def test_a_wrong_number_is_noticed(name: str, column: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every segment. The slope is what the first one of ERF and TANH has in place of a constant."""
    function = {"POWERS": "exp", "ERF": "erf", "TANH": "tanh"}.get(name, "log")
    x = evenly(function, 1 << 12)
    assert worst(function, x) <= FUNCTIONS[function][2]
    table = getattr(tables, name)
    row = 0 if column else 1
    if isinstance(table[0], tuple):
        monkeypatch.setattr(tables, name, (*table[:row], changed(table[row], column), *table[row + 1 :]))
    else:
        monkeypatch.setattr(tables, name, changed(table, column))
    assert worst(function, x) > FUNCTIONS[function][2]


def changed(row: tuple[float, ...], column: int) -> tuple[float, ...]:
    return (*row[:column], row[column] * (1 + 1e-6) + 1e-6, *row[column + 1 :])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tables_are_used_where_vectors_hold_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nest = map_nest(lambda a: call(name, a), 64, FLOAT32)
    narrow = replace(WIDE, features=WIDE.features - {"avx512vbmi2"})
    assert LOOK_UP in emit_for(nest, WIDE)
    assert LOOK_UP not in emit_for(nest, narrow)
    assert LOOK_UP not in emit_for(nest, HOSTS["avx2"])
    for module in (exponentials, logarithms):
        monkeypatch.setattr(module, "serve", lambda _x: False)
    assert LOOK_UP not in emit_for(nest, WIDE)
