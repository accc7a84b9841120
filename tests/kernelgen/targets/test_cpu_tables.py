"""Functions whose coefficients are looked up in registers: errors, special values, equal bits, and who looks up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.math import exponentials, logarithms, tables
from kernelgen.targets.cpu.math.register_tables import LOOK_UP
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import FLOAT32
from tests.support.hosts import HOSTS, needs_avx2, run_on
from tests.support.nests import call, map_nest

HERE = detect_host()
WIDE = replace(HERE, features=HERE.features | {"avx512f", "avx512bw", "avx512vl", "avx512vbmi2", "avx2", "fma"})
needs_wide_tables = pytest.mark.skipif(HERE.vector_floats != 16, reason="this processor has no vectors of 16 floats")

Reference = Callable[[np.ndarray], np.ndarray]
FUNCTIONS: dict[str, tuple[float, float, float, Reference]] = {
    "exp": (-104, 89, 1.05, np.exp), "log": (1e-3, 4, 1.05, np.log), "log1p": (-0.9999, 4, 1.25, np.log1p),
    "tanh": (-9.5, 9.5, 1.05, np.tanh), "erf": (-4.2, 4.2, 1.3, np.vectorize(math.erf, otypes=[np.float64])),
}  # fmt: skip
"""Where each varies, its largest error in units in the last place, and what it is."""
OF_EIGHT = ("tanh", "erf")
"""Those that registers of 8 floats have tables for."""
TABLED = [
    *(pytest.param(HERE, name, id=f"{name}, 16", marks=needs_wide_tables) for name in FUNCTIONS),
    *(pytest.param(HOSTS["avx2"], name, id=f"{name}, 8", marks=needs_avx2) for name in OF_EIGHT),
]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 1.5, 0.75, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40, -1e-40], np.float32)


def computed(host: Host, name: str, x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    run_on(host, map_nest(lambda a: call(name, a), len(x), FLOAT32), x, y)
    return y


def worst(host: Host, name: str, x: np.ndarray) -> float:
    """The largest error in units in the last place; NaN, infinities and signs of zeros must agree."""
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name][3](x.astype(np.float64))
        rounded = exact.astype(np.float32)
    got = computed(host, name, x)
    usual = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~usual], rounded[~usual])
    zeros = usual & (exact == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))
    _, exponents = np.frexp(np.maximum(np.abs(exact[usual]), 2.0**-126))
    return float((np.abs(got[usual] - exact[usual]) / np.ldexp(1.0, exponents - 24)).max())


def evenly(name: str, count: int) -> np.ndarray:
    low, high, *_ = FUNCTIONS[name]
    return np.linspace(low, high, count).astype(np.float32)


def of_every_kind(name: str) -> np.ndarray:
    every = np.arange(0, 1 << 32, 20011, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([evenly(name, 1 << 19), evenly(name, 1 << 17) / 16, every, SPECIAL])


@pytest.mark.parametrize(("host", "name"), TABLED)
def test_errors_are_small_for_floats_of_every_exponent(host: Host, name: str) -> None:
    assert worst(host, name, of_every_kind(name)) <= FUNCTIONS[name][2]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_here(name: str) -> None:
    assert worst(HERE, name, of_every_kind(name)) <= 1.6


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 31])
def test_a_float_has_the_same_bits_wherever_it_lies(name: str, size: int) -> None:
    x = np.concatenate([evenly(name, 48), SPECIAL])
    whole = computed(HERE, name, x).view(np.uint32)
    for start in (0, 16, 45):
        part = computed(HERE, name, x[start : start + size].copy()).view(np.uint32)
        np.testing.assert_array_equal(part, whole[start : start + size])


def changed(row: tuple[float, ...], column: int) -> tuple[float, ...]:
    return (*row[:column], row[column] * (1 + 1e-6) + 1e-6, *row[column + 1 :])


@needs_wide_tables
@pytest.mark.parametrize("column", range(16))
@pytest.mark.parametrize(("name", "function"), [("POWERS", "exp"), ("LOG_FACTOR", "log"), ("LOG_START", "log")])
def test_a_wrong_number_is_noticed(name: str, function: str, column: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, name, changed(getattr(tables, name), column))
    assert worst(HERE, function, evenly(function, 1 << 12)) > FUNCTIONS[function][2]


SEGMENTS = [
    pytest.param(host, name, column, id=f"{name}, {column} of {lanes}", marks=mark)
    for host, lanes, mark in ((HERE, 16, needs_wide_tables), (HOSTS["avx2"], 8, needs_avx2))
    for name in ("ERF", "TANH")
    for column in range(lanes)
]


@pytest.mark.parametrize(("host", "name", "column"), SEGMENTS)
def test_a_wrong_number_is_noticed_in_every_segment(
    host: Host, name: str, column: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slope is what the first one has in place of a constant."""
    function, table = name.lower(), getattr(tables, name)
    x, bound = evenly(function, 1 << 12), FUNCTIONS[function][2]
    assert worst(host, function, x) <= bound
    segments = table[host.vector_floats]
    row = 0 if column else 1
    rows = (*segments.rows[:row], changed(segments.rows[row], column), *segments.rows[row + 1 :])
    monkeypatch.setattr(tables, name, {**table, host.vector_floats: replace(segments, rows=rows)})
    assert worst(host, function, x) > bound


@needs_avx2
@pytest.mark.parametrize("name", OF_EIGHT)
def test_no_degree_is_there_in_vain(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = getattr(tables, name.upper())[8]
    monkeypatch.setattr(tables, name.upper(), {8: replace(segments, rows=segments.rows[:-1])})
    assert worst(HOSTS["avx2"], name, evenly(name, 1 << 14)) > FUNCTIONS[name][2]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tables_are_used_where_vectors_hold_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nest = map_nest(lambda a: call(name, a), 64, FLOAT32)
    narrow = replace(WIDE, features=WIDE.features - {"avx512vbmi2"})
    assert LOOK_UP[16] in emit_for(nest, WIDE)
    for host in (narrow, HOSTS["avx2"]):
        assert LOOK_UP[16] not in emit_for(nest, host)
        assert (LOOK_UP[8] in emit_for(nest, host)) == (name in OF_EIGHT)
    assert "permps" not in emit_for(nest, HOSTS["sse4"])
    for module in (exponentials, logarithms):
        monkeypatch.setattr(module, "serve", lambda *_: False)
    assert LOOK_UP[16] not in emit_for(nest, WIDE)
