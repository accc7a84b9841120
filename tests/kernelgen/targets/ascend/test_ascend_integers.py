"""Whole numbers of every width compute in the simulator as the meaning says: words of int32 stand in for what is missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.ascendc.reader import read_kernel
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.semantics import reference
from kernelgen.targets.ascend.proof.statement_count import statements_run
from kernelgen.tensor.dtypes import BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, DType

WHOLE = (INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64)
COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
GROUPS = {
    "ring": ("Add", "Sub", "Mul", "Neg", "Abs"),
    "order": ("Maximum", "Minimum", "Sign", *COMPARISONS),
    "quotients": ("FloorDiv", "FloorMod", "Mod", "Div"),
}
ONE = ("Neg", "Abs", "Sign")
SIZE = 700
"""No multiple of the lanes of a repeat."""


def numbers(dtype: DType, seed: int) -> np.ndarray:
    """All magnitudes alike, small ones, and the ends of the range."""
    random, limits = np.random.default_rng(seed), np.iinfo(dtype.numpy)
    large = random.integers(limits.min, limits.max, SIZE, dtype.numpy, endpoint=True)
    spread = large >> random.integers(0, dtype.bits, SIZE).astype(dtype.numpy)
    small = random.integers(max(limits.min, -3), 4, SIZE).astype(dtype.numpy)
    ends = random.choice(np.array([limits.min, limits.max, 0, 1, limits.max // 2], dtype.numpy), SIZE)
    return np.choose(random.integers(0, 4, SIZE), [large, spread, small, ends]).astype(dtype.numpy)


def operators(names: Sequence[str], dtype: DType) -> KernelDesc:
    """All of them on the same two arrays."""
    w, x, y = Writer(), tensor("x", SIZE, dtype=dtype), tensor("y", SIZE, dtype=dtype)
    found = [
        w.op(name, *((x,) if name in ONE else (x, y)), shape=(SIZE,), dtype=BOOL if name in COMPARISONS else dtype)
        for name in names
    ]
    return w.desc("whole", (x, y), *found)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_whole_numbers_compute_modulo_their_width(dtype: DType, group: str) -> None:
    kernel = compile(operators(GROUPS[group], dtype), "ascend")
    x, y = numbers(dtype, 0), numbers(dtype, 1)
    for name, found, wanted in zip(GROUPS[group], kernel(x, y), reference(kernel.desc)(x, y), strict=True):
        np.testing.assert_array_equal(found, wanted, name)


@pytest.mark.parametrize("divisor", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize("dtype", [INT32, UINT32, INT64, UINT64], ids=str)
def test_known_divisors(dtype: DType, divisor: int) -> None:
    w, x = Writer(), tensor("x", SIZE, dtype=dtype)
    names = ("FloorDiv", "FloorMod", "Mod")
    results = [w.op(name, x, constant(divisor, dtype), shape=(SIZE,), dtype=dtype) for name in names]
    kernel, given = compile(w.desc("known", (x,), *results), "ascend"), numbers(dtype, 2)
    for name, found, wanted in zip(names, kernel(given), reference(kernel.desc)(given), strict=True):
        np.testing.assert_array_equal(found, wanted, name)


@pytest.mark.parametrize("dtype", [INT8, UINT32, INT64, UINT64], ids=str)
def test_rows_share_numbers_and_are_summed(dtype: DType) -> None:
    """A number a row and a number a column are spread; sums along rows wrap around."""
    w = Writer()
    shapes = {"x": (9, 40), "row": (9, 1), "column": (40,)}
    x, row, column = (tensor(name, *shape, dtype=dtype) for name, shape in shapes.items())
    spread = w.op("Add", w.op("Sub", x, row, shape=(9, 40), dtype=dtype), column, shape=(9, 40), dtype=dtype)
    total = w.op("ReduceSum", spread, shape=(9,), dtype=dtype, axis=(1,), keep_dims=False)
    kernel, random = compile(w.desc("rows", (x, row, column), spread, total), "ascend"), np.random.default_rng(3)
    limits = np.iinfo(dtype.numpy)
    given = [random.integers(limits.min, limits.max, one, dtype.numpy, endpoint=True) for one in shapes.values()]
    for found, wanted in zip(kernel(*given), reference(kernel.desc)(*given), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("size", [5, 700, 20_000])
@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16, UINT16], ids=str)
def test_all_lanes_of_narrow_numbers_become_one(dtype: DType, size: int) -> None:
    """They are combined as int32, many at once, and wrap around at their own width."""
    w, x = Writer(), tensor("x", size, dtype=dtype)
    names = ("ReduceSum", "ReduceMax", "ReduceMin")
    results = [w.op(name, x, shape=(), dtype=dtype, axis=(0,), keep_dims=False) for name in names]
    kernel = compile(w.desc("total", (x,), *results), "ascend")
    given = np.resize(numbers(dtype, 4), size)
    for name, found, wanted in zip(names, kernel(given), reference(kernel.desc)(given), strict=True):
        np.testing.assert_array_equal(found, wanted, name)
    assert statements_run(read_kernel(kernel.source), blocks=1, tiling={}) < 1000


@pytest.mark.parametrize("size", [5, 700, 20_000])
def test_all_lanes_of_truth_values_become_one(size: int) -> None:
    w, x = Writer(), tensor("x", size, dtype=BOOL)
    names = ("ReduceAny", "ReduceAll")
    results = [w.op(name, x, shape=(), dtype=BOOL, axis=(0,), keep_dims=False) for name in names]
    kernel = compile(w.desc("total", (x,), *results), "ascend")
    for first, last in ((False, False), (True, True), (False, True), (True, False)):
        given = np.full(size, first)
        given[-1] = last
        for name, found, wanted in zip(names, kernel(given), reference(kernel.desc)(given), strict=True):
            np.testing.assert_array_equal(found, wanted, name)


@pytest.mark.parametrize("size", [5, 700, 20_000])
@pytest.mark.parametrize("kind", [INT32, INT64], ids=str)
@pytest.mark.parametrize("dtype", [FLOAT32, UINT16], ids=str)
def test_the_first_of_many_extremes_is_found_in_lanes(dtype: DType, kind: DType, size: int) -> None:
    """An index has 32 bits whatever its type is: indices of a tile are compared at once."""
    w, x = Writer(), tensor("x", size, dtype=dtype)
    results = [w.op(name, x, shape=(), dtype=kind, axis=0) for name in ("Argmax", "Argmin")]
    kernel = compile(w.desc("extreme", (x,), *results), "ascend")
    given = np.resize(np.array([3, 7, 1, 7, 1], dtype.numpy), size)
    for found, wanted in zip(kernel(given), reference(kernel.desc)(given), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert statements_run(read_kernel(kernel.source), blocks=1, tiling={}) < 4000
