"""Rows are read once: those of known length by registers, others where they fit the shared memory of a launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from kernel_examples import Writer, constant, softmax, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import BackendUnavailable
from kernelgen.kernel import Kernel
from kernelgen.machines.gpu.device import HOPPER
from kernelgen.nest.nodes import Alloc, Grid, Num, Space
from kernelgen.nest.walk import statements
from kernelgen.simulators.ptx import Report
from kernelgen.targets.gpu.dialects.program import launches
from kernelgen.targets.gpu.launch.interpret import InterpretedEntry
from kernelgen.tensor.dims import sym

ROW_BYTES = HOPPER.array_bytes
FITTING = ROW_BYTES // 4


def centred(*operators: str) -> KernelDesc:
    """``f(x - sum(x))``, then divided by the sum of its squares: three passes over a row."""
    w, x = Writer(), tensor("x", sym("M"), sym("N"))
    full, row = (sym("M"), sym("N")), (sym("M"), 1)
    value = w.op("Sub", x, w.op("ReduceSum", x, shape=row, axis=(1,), keep_dims=True), shape=full)
    for operator in operators:
        value = w.op(operator, value, shape=full)
    squares = w.op("ReduceSum", w.op("Mul", value, value, shape=full), shape=row, axis=(1,), keep_dims=True)
    scale = w.op("Rsqrt", w.op("Add", squares, constant(1.0), shape=row), shape=row)
    return w.desc("centred", (x,), w.op("Mul", value, scale, shape=full))


@pytest.fixture(scope="module")
def unknown() -> Kernel:
    return kernelgen.compile(softmax(sym("M"), sym("N")), "gpu")


@pytest.mark.parametrize("columns", [1, 5, 300, FITTING, FITTING + 1])
def test_one_kernel_is_right_at_every_length(unknown: Kernel, columns: int) -> None:
    x = np.random.default_rng(columns).normal(size=(2, columns)).astype(np.float32)
    y, (report,) = interpreted(unknown, x)
    powers = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, powers / powers.sum(1, keepdims=True), rtol=1e-5)
    assert report.kernel == ("softmax_0" if columns <= FITTING else "softmax_0_long")


def test_a_row_that_fits_is_read_once_and_written_once(unknown: Kernel) -> None:
    _, (report,) = interpreted(unknown, np.ones((2, 1000), np.float32))
    assert report.counts.of("global load").bytes == 2 * 1000 * 4 == report.counts.of("global store").bytes


def test_the_launch_asks_for_what_the_row_takes(unknown: Kernel) -> None:
    short, long = launches(unknown.nest)
    assert [short.dynamic_shared({"M": 3, "N": n}) for n in (1, 5, 1000)] == [16, 32, 4000]
    assert (short.most_dynamic_shared, long.most_dynamic_shared) == (ROW_BYTES, 0)


def test_rows_share_memory_when_one_ends_where_the_other_starts(unknown: Kernel) -> None:
    short, long = (grid for grid in unknown.nest.body.statements if isinstance(grid, Grid))
    assert [len(rows_of(grid)) for grid in (short, long)] == [1, 0]


@pytest.mark.parametrize("operators", [(), ("Tanh",)])
def test_other_passes_over_a_row(operators: tuple[str, ...]) -> None:
    kernel = kernelgen.compile(centred(*operators), "gpu")
    x = np.random.default_rng(0).normal(size=(3, 77)).astype(np.float32)
    y, (report,) = interpreted(kernel, x)
    value = x - x.sum(1, keepdims=True)
    value = np.tanh(value) if operators else value
    np.testing.assert_allclose(y, value / np.sqrt((value * value).sum(1, keepdims=True) + 1), rtol=1e-4, atol=1e-6)
    assert report.counts.of("global load").bytes == x.nbytes == report.counts.of("global store").bytes


def test_rows_of_known_length_need_no_second_form() -> None:
    nest = kernelgen.compile(softmax(sym("M"), 1000), "gpu").nest
    assert [len(rows_of(grid)) for grid in nest.body.statements if isinstance(grid, Grid)] == [0]


@pytest.mark.parametrize("columns", [77, 1000, 12000])
def test_rows_of_known_length_are_read_once(columns: int) -> None:
    """No multiple of what the threads take in a turn: the last turn is guarded."""
    kernel = kernelgen.compile(softmax(2, columns), "gpu")
    _, (report,) = interpreted(kernel, np.ones((2, columns), np.float32))
    assert report.counts.of("global load").bytes == 2 * columns * 4 == report.counts.of("global store").bytes
    assert report.counts.of("local load").requests == 0


def rows_of(grid: Grid) -> list[str]:
    made = [part.buffer for part in statements(grid) if isinstance(part, Alloc)]
    return [buffer.name for buffer in made if buffer.space is Space.SHARED and "_row" in buffer.name]


def interpreted(kernel: Kernel, x: np.ndarray) -> tuple[np.ndarray, Sequence[Report]]:
    """The result and what each launch did, in the interpreter also where there is a device."""
    kernel = kernel.without_device()
    try:
        (y,) = kernel(x)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert isinstance(kernel.entry, InterpretedEntry)
    return y, kernel.entry.reports


@pytest.mark.parametrize("columns", [1, 5, 33, 300, 4096])
def test_one_row_alone_is_one_launch(columns: int) -> None:
    """What follows its sums runs in the block that made them, as long as each thread has a few elements."""
    kernel = kernelgen.compile(softmax(1, columns), "gpu")
    assert kernel.launches == 1
    x = np.random.default_rng(columns).normal(size=(1, columns)).astype(np.float32)
    powers = np.exp(x - x.max())
    np.testing.assert_allclose(interpreted(kernel, x)[0], powers / powers.sum(), rtol=1e-5)


def test_one_long_row_is_shared_by_the_device() -> None:
    assert kernelgen.compile(softmax(1, 32768), "gpu").launches == 2


def test_what_reads_no_sum_is_not_held_back_by_it() -> None:
    """A map beside a sum of all has blocks of its own."""
    w, x, y = Writer(), tensor("x", 4000), tensor("y", 9000)
    total = w.op("ReduceSum", x, shape=(1,), axis=(0,), keep_dims=True)
    kernel = kernelgen.compile(w.desc("both", (x, y), total, w.op("Exp", y, shape=(9000,))), "gpu")
    (launch,) = launches(kernel.nest)
    assert launch.blocks != Num(1)
