"""float64 in the simulator of Ascend: moved, compared, chosen and converted by its bits; arithmetic is refused."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.driver import compile
from kernelgen.errors import UnsupportedError
from kernelgen.semantics import reference
from kernelgen.tensor.dtypes import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT16,
    UINT32,
    UINT64,
    DType,
)

SIZE = 700
"""No multiple of the lanes of a repeat."""
TESTS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "IsNan", "IsInf", "IsFinite")
CHOICES = ("Maximum", "Minimum", "Neg", "Abs", "Sign", "SelectGT")
ONE = ("IsNan", "IsInf", "IsFinite", "Neg", "Abs", "Sign")


def numbers(seed: int) -> np.ndarray:
    """All magnitudes, numbers that tie, and what is special."""
    random = np.random.default_rng(seed)
    wide = np.exp2(random.uniform(-1020, 1020, SIZE)) * random.choice([-1.0, 1.0], SIZE)
    near = random.integers(-3, 4, SIZE).astype(np.float64)
    special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324], SIZE)
    return np.choose(random.integers(0, 3, SIZE), [wide, near, special])


def operators(*names: str) -> Writer:
    w = Writer()
    x, y = tensor("x", SIZE, dtype=FLOAT64), tensor("y", SIZE, dtype=FLOAT64)
    for name in names:
        given = (x,) if name in ONE else (x, y, y, x) if name == "SelectGT" else (x, y)
        w.op(name, *given, shape=(SIZE,), dtype=BOOL if name in TESTS else FLOAT64)
    return w


@pytest.mark.parametrize("names", [TESTS, CHOICES], ids=["tests", "choices"])
def test_floats_are_compared_and_chosen_by_their_bits(names: tuple[str, ...]) -> None:
    w = operators(*names)
    inputs = tensor("x", SIZE, dtype=FLOAT64), tensor("y", SIZE, dtype=FLOAT64)
    kernel = compile(w.desc("doubles", inputs, *(op.outs[0] for op in w.ops)), "ascend")
    x, y = numbers(0), numbers(1)
    for name, found, wanted in zip(names, kernel(x, y), reference(kernel.desc)(x, y), strict=True):
        np.testing.assert_array_equal(found, wanted, name)


def cast(source: DType, target: DType, x: np.ndarray) -> None:
    w, given = Writer(), tensor("x", x.size, dtype=source)
    desc = w.desc("cast", (given,), w.op("Cast", given, shape=(x.size,), dtype=target, dst_type=target.name))
    with np.errstate(over="ignore"):
        (found,), (wanted,) = compile(desc, "ascend")(x), reference(desc)(x)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("target", [FLOAT32, FLOAT16, BOOL], ids=str)
def test_float64_is_rounded_once(target: DType) -> None:
    halves = np.random.default_rng(3).integers(1, 1 << 14, SIZE) * 2.0**-14 + 1  # ties of float16
    cast(FLOAT64, target, np.concatenate([numbers(2), halves, halves + 2.0**-40, [1e39, -1e39, 3.4028235e38]]))


@pytest.mark.parametrize("source", [FLOAT32, FLOAT16], ids=str)
def test_floats_are_widened(source: DType) -> None:
    with np.errstate(over="ignore"):
        x = np.concatenate([numbers(4), np.exp2(np.arange(-149.0, 127))]).astype(source.numpy)
    cast(source, FLOAT64, x)


@pytest.mark.parametrize("source", [INT8, UINT16, INT32, UINT32, INT64, UINT64, BOOL], ids=str)
def test_whole_numbers_become_the_nearest_float64(source: DType) -> None:
    random = np.random.default_rng(5)
    bits = random.integers(0, 1 << 64, SIZE, dtype=np.uint64) >> random.integers(0, 64, SIZE, dtype=np.uint64)
    cast(source, FLOAT64, np.concatenate([bits, np.uint64(1) << np.arange(64, dtype=np.uint64)]).astype(source.numpy))


@pytest.mark.parametrize("target", [INT8, INT32, UINT32, INT64, UINT64], ids=str)
def test_float64_loses_its_fraction(target: DType) -> None:
    random, limits = np.random.default_rng(6), np.iinfo(target.numpy)
    size = np.exp2(random.uniform(-2, min(target.bits, 63) - 1.01, SIZE))
    cast(FLOAT64, target, np.where((random.random(SIZE) < 0.5) & (limits.min < 0), -size, size))


def test_arithmetic_is_refused_by_its_name() -> None:
    w, x = Writer(), tensor("x", 8, dtype=FLOAT64)
    desc = w.desc("sum", (x,), w.op("Add", x, constant(1.0, FLOAT64), shape=(8,)))
    with pytest.raises(UnsupportedError, match="add of float64: 910B has no unit for it"):
        compile(desc, "ascend")
