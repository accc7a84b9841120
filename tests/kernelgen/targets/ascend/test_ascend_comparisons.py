"""Comparisons of types that no instruction compares: bools are logic of bits, casts to int64 need not be made."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.driver import compile
from kernelgen.samples.inputs import draw
from kernelgen.semantics import reference
from kernelgen.tensor.dtypes import BOOL, FLOAT32, INT32, INT64

COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")


@pytest.mark.parametrize("name", COMPARISONS)
def test_bools_are_compared_as_bits(name: str) -> None:
    w, x, y = Writer(), tensor("x", 300, dtype=BOOL), tensor("y", 300, dtype=BOOL)
    several = [w.op(name, x, other, shape=(300,)) for other in (y, constant(0, BOOL), constant(1, BOOL))]
    desc = w.desc("compared", (x, y), *several, w.op(name, constant(1, BOOL), y, shape=(300,)))
    bits = np.random.default_rng(0).integers(0, 2, (2, 300)).astype(bool)
    for found, wanted in zip(compile(desc, "ascend")(*bits), reference(desc)(*bits), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_one_bool_chooses_for_all_turns_of_a_core() -> None:
    size = 300_000
    w, chosen, x, y = Writer(), tensor("chosen", 1, dtype=BOOL), tensor("x", size), tensor("y", size)
    desc = w.desc("chosen", (chosen, x, y), w.op("Select", chosen, x, y, shape=(size,), dtype=FLOAT32))
    kernel = compile(desc, "ascend")
    assert "for (" in kernel.source
    first, second = np.random.default_rng(0).standard_normal((2, size)).astype(np.float32)
    for bit, wanted in ((True, first), (False, second)):
        np.testing.assert_array_equal(kernel(np.array([bit]), first, second)[0], wanted)


def test_whether_any_number_is_not_finite() -> None:
    w, x = Writer(), tensor("x", 300)
    found = (w.op(name, x, shape=(300,), dtype=BOOL) for name in ("IsInf", "IsNan"))
    status = w.op("ElemAny", w.op("LogicalOr", *found, shape=(300,)), shape=(1,), dtype=FLOAT32)
    kernel = compile(w.desc("status", (x,), status), "ascend")
    for value in (0.0, np.inf, -np.inf, np.nan):
        data = np.ones(300, np.float32)
        data[277] = value
        (found,) = kernel(data)
        np.testing.assert_array_equal(found, [not np.isfinite(value)])


@pytest.mark.parametrize("name", COMPARISONS)
def test_numbers_cast_to_int64_are_compared_before(name: str) -> None:
    w, x, y = Writer(), tensor("x", 300, dtype=INT32), tensor("y", 300, dtype=INT32)
    wide = [w.op("Cast", each, shape=(300,), dtype=INT64, dst_type="int64") for each in (x, y)]
    desc = w.desc("compared", (x, y), w.op(name, *wide, shape=(300,), dtype=BOOL))
    limits = np.iinfo(np.int32)
    first, second = np.random.default_rng(0).choice([limits.min, -1, 0, 1, limits.max], (2, 300)).astype(np.int32)
    (found,) = compile(desc, "ascend")(first, second)
    np.testing.assert_array_equal(found, reference(desc)(first, second)[0])


def test_rows_of_one_hot_compare_a_cast_number_with_the_column() -> None:
    w, x = Writer(), tensor("x", 5, dtype=INT32)
    on, off = constant(1.0), constant(0.0)
    desc = w.desc("one_hot", (x,), w.op("OneHot", x, on, off, shape=(5, 3), dtype=FLOAT32, depth=3, axis=-1))
    (found,), (wanted,) = compile(desc, "ascend")(*draw(desc)), reference(desc)(*draw(desc))
    np.testing.assert_array_equal(found, wanted)
