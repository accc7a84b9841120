"""Short rows: several are one tile, one copy and one instruction; right by the simulator, faster than one by one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from kernel_examples import (
    Writer,
    column_sum,
    constant,
    half_sum,
    layer_norm,
    softmax,
    tensor,
    two_phase_branches,
)

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.kernel import Kernel
from kernelgen.plan import Plan
from kernelgen.samples.inputs import draw
from kernelgen.semantics import reference
from kernelgen.simulators.ascendc import Report
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT8, INT32, INT64, DType


def spread(rows: Dim, columns: int, dtype: DType = FLOAT32) -> KernelDesc:
    """A column for all rows and a number for each."""
    w, x = Writer(), tensor("x", rows, columns, dtype=dtype)
    bias, scale = tensor("bias", columns, dtype=dtype), tensor("scale", rows, 1, dtype=dtype)
    full = (rows, columns)
    return w.desc("spread", (x, bias, scale), w.op("Mul", w.op("Add", x, bias, shape=full), scale, shape=full))


def fold_rows(rows: int, columns: int, name: str, dtype: DType = FLOAT32, axis: tuple[int, ...] = (1,)) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns, dtype=dtype)
    shape = tuple(extent for k, extent in enumerate((rows, columns)) if k not in axis)
    return w.desc("fold_rows", (x,), w.op(name, x, shape=shape, axis=axis))


def weighted_sum(rows: int, columns: int) -> KernelDesc:
    """One number of all rows and columns."""
    w, x, weight = Writer(), tensor("x", rows, columns), tensor("weight", columns)
    product = w.op("Mul", x, weight, shape=(rows, columns))
    return w.desc("weighted_sum", (x, weight), w.op("ReduceSum", product, shape=(1,), axis=(0, 1)))


def clip(rows: int, columns: int) -> KernelDesc:
    """Comparisons and choices: bits of rows, and a bit for each row."""
    w, x, top = Writer(), tensor("x", rows, columns), tensor("top", rows, 1)
    full = (rows, columns)
    above = w.op("Greater", x, top, shape=full, dtype=BOOL)
    positive = w.op("Greater", top, constant(0.0), shape=(rows, 1), dtype=BOOL)
    both = w.op("LogicalAnd", above, positive, shape=full)
    return w.desc("clip", (x, top), w.op("Select", both, top, x, shape=full, dtype=FLOAT32), both)


def widen(rows: int, columns: int, dtype: DType) -> KernelDesc:
    """Rows of small types: their blocks have more elements."""
    w, x, scale = Writer(), tensor("x", rows, columns, dtype=dtype), tensor("scale", rows, 1)
    wide = w.op("Cast", x, shape=(rows, columns), dtype=FLOAT32, dst_type="float32")
    return w.desc("widen", (x, scale), w.op("Mul", wide, scale, shape=(rows, columns)))


def blocks(dtype: DType = FLOAT16) -> KernelDesc:
    """Three loops: the maximum of each row of a batch of tables, taken away."""
    w, x = Writer(), tensor("x", 3, 40, 20, dtype=dtype)
    top = w.op("ReduceMax", x, shape=(3, 40, 1), axis=(2,), keep_dims=True)
    return w.desc("blocks", (x,), w.op("Sub", x, top, shape=(3, 40, 20)))


def running(rows: Dim, columns: Dim) -> KernelDesc:
    """Running sums, from the end, of what rows have less than their greatest element: sums keep their order."""
    w, x = Writer(), tensor("x", rows, columns)
    top = w.op("ReduceMax", x, shape=(rows, 1), axis=(1,), keep_dims=True)
    less = w.op("Sub", x, top, shape=(rows, columns))
    return w.desc("running", (x,), w.op("CumSum", less, shape=(rows, columns), axis=1, exclusive=False, reverse=True))


def greatest(rows: int, columns: int, dtype: DType = FLOAT32) -> KernelDesc:
    """The place of every row's greatest element, as a number of 64 bits."""
    w, x = Writer(), tensor("x", rows, columns, dtype=dtype)
    return w.desc("greatest", (x,), w.op("Argmax", x, shape=(rows,), dtype=INT64, axis=1, output_type="int64"))


LONG = pytest.mark.long
CASES = {
    "softmax": softmax(64, 50),
    "softmax of one repeat and more": softmax(20, 150),
    "layer_norm": layer_norm(200, 36),
    "spread": spread(70, 24),
    "spread f16": spread(70, 24, FLOAT16),
    "spread odd rows": spread(61, 3),
    "half_sum": half_sum(90, 20),
    "maximum": fold_rows(33, 70, "ReduceMax"),
    "product": fold_rows(50, 13, "ReduceProd"),
    "product of several blocks": fold_rows(20, 100, "ReduceProd"),
    "integers": fold_rows(300, 13, "ReduceSum", INT32),
    "integers of one block": fold_rows(100, 5, "ReduceMax", INT32),
    "columns": column_sum(300, 40),
    "columns of integers": fold_rows(100, 30, "ReduceSum", INT32, (0,)),
    "both": weighted_sum(300, 40),
    "branches": two_phase_branches(100, 30),
    "clip": clip(70, 20),
    "int8": widen(50, 20, INT8),
    "bfloat16": widen(50, 20, BFLOAT16),
    "blocks": blocks(),
    "running sums": running(70, 30),
    "running sums of long rows": running(70, 1100),
    "places": greatest(100, 30),
    "places of int8": greatest(100, 30, INT8),
}


SEVERAL = r"DataCopyExtParams\{(?!1,)"
"""A copy of several rows."""


def run(kernel: Kernel) -> Report:
    """The report of a run on drawn inputs."""
    entry = SimulatedEntry(kernel.source, kernel.nest)
    replace(kernel, entry=entry)(*draw(kernel.desc))
    return entry.reports[0]


def row_by_row(desc: KernelDesc) -> Kernel:
    """The kernel of a plan without tiles of rows."""
    document = json.dumps(compile(desc, "ascend").plan.to_json()).replace('"mark": "rows"', '"mark": ""')
    return compile(desc, "ascend", Plan.from_json(json.loads(document)))


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG) if "long rows" in name else name for name in CASES])
def test_tiles_of_rows_agree_with_their_meaning(name: str) -> None:
    desc = CASES[name]
    kernel = compile(desc, "ascend")
    assert re.search(SEVERAL, kernel.source)
    found, wanted = kernel(*draw(desc)), reference(desc)(*draw(desc))
    tolerance = 1e-2 if any(t.dtype.itemsize == 2 for t in (*desc.inputs, *desc.outputs)) else 1e-3
    for one, other in zip(found, wanted, strict=True):
        left, right = np.asarray(one, np.float64), np.asarray(other, np.float64)
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "name",
    [
        "softmax",
        "layer_norm",
        "spread",
        "maximum",
        "columns",
        "running sums",
        "places",
        "places of int8",
    ],
)
def test_tiles_of_rows_are_faster_than_rows(name: str) -> None:
    """By the time model."""
    tiled, serial = run(compile(CASES[name], "ascend")), run(row_by_row(CASES[name]))
    assert serial.pipeline_cycles > 3 * tiled.pipeline_cycles


def test_one_kernel_serves_any_number_of_rows() -> None:
    kernel = compile(softmax(sym("M"), 50), "ascend")
    for rows in (1, 2, 7, 8, 163, 164, 1000):
        x = np.random.default_rng(rows).standard_normal((rows, 50)).astype(np.float32)
        (found,) = kernel(x)
        power = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(found, power / power.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(70, 30), (300, 3), (2, 90)], ids=str)
def test_running_sums_of_open_shapes_take_all_rows_at_once(shape: tuple[int, int]) -> None:
    assert cycles(running(sym("M"), sym("N")), *shape) < 3 * cycles(running(*shape), *shape)


def test_rows_that_move_otherwise_are_done_one_by_one() -> None:
    """Windows overlap: x[i + j] is no tile of rows."""
    w, x = Writer(), tensor("x", 40, 30)
    turned = w.op("Transpose", x, shape=(30, 40), perm=(1, 0))
    desc = w.desc("turned", (x,), w.op("Mul", turned, constant(2.0), shape=(30, 40)))
    (found,), (wanted,) = compile(desc, "ascend")(*draw(desc)), reference(desc)(*draw(desc))
    np.testing.assert_array_equal(found, wanted)


def test_a_clamped_loop_gives_longer_tiles_than_a_few_rows() -> None:
    """Images of three rows beside 40 clamped columns of 4: the columns are rows of tiles, once peeled."""
    w, x = Writer(), tensor("x", 3, 50, 40, 4)
    padded = w.op("PadAkg", x, shape=(3, 51, 41, 4), head=(0, 0, 0, 0), tail=(0, 1, 1, 0), pad_val=0.0)
    desc = w.desc("padded", (x,), padded)
    kernel = compile(desc, "ascend")
    assert "DataCopyExtParams{40, 16, 0, 3, 0}" in kernel.source
    (found,), (wanted,) = kernel(*draw(desc)), reference(desc)(*draw(desc))
    np.testing.assert_array_equal(found, wanted)


def random_numbers(shape: tuple[Dim, ...], perm: tuple[int, ...] = ()) -> KernelDesc:
    """Random numbers, in another order of axes where one is given, beside an operand that says how many."""
    w = Writer()
    found = w.op("StandardNormal", shape=shape, dtype=FLOAT32, seed=2**33 + 5)
    shape = tuple(shape[axis] for axis in perm) if perm else shape
    found = w.op("Transpose", found, shape=shape, perm=perm) if perm else found
    x = tensor("x", *shape)
    return w.desc("random_numbers", (x,), w.op("Mul", found, x, shape=shape))


def cycles(desc: KernelDesc, *shape: int) -> float:
    """Of a run on operands of that shape, by the time model."""
    kernel, x = compile(desc, "ascend"), np.ones(shape, np.float32)
    entry = SimulatedEntry(kernel.source, kernel.nest)
    (found,), (wanted,) = replace(kernel, entry=entry)(x), reference(desc)(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    return entry.reports[0].cycles


@pytest.mark.parametrize("shape", [(65, 3, 1), (5, 3, 13)], ids=str)
def test_random_numbers_of_open_shapes_take_about_the_time_of_as_many_in_a_row(shape: tuple[int, ...]) -> None:
    """What is counted is a place in a row of all, so the last axis may be of one element."""
    assert cycles(random_numbers((sym("M"), 3, sym("N"))), *shape) < 1.5 * cycles(random_numbers((195,)), 195)


def test_lanes_run_along_a_long_axis_where_only_temporaries_are_contiguous_along_a_short_one() -> None:
    """Numbers are counted along the last two axes, of 4 and 2, and stored along the first, of 4: 33 and more are in between."""
    shape = (4, 33, 5, 4, 2)
    turned = random_numbers(shape, (2, 3, 4, 1, 0))
    in_a_row = random_numbers((prod(shape),))
    assert cycles(turned, 5, 4, 2, 33, 4) < 40 * cycles(in_a_row, prod(shape))
