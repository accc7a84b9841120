"""How kernels touch memory: transposes, columns, short rows and rows of unknown length, by the interpreter's counters."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, column_sum, constant, softmax, tensor, transpose_add

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.specialize import specialize
from kernelgen.errors import BackendUnavailable
from kernelgen.machines.gpu.device import HOPPER
from kernelgen.nest.extents import extent
from kernelgen.nest.verify import verify as verify_nest
from kernelgen.plan import Plan
from kernelgen.poly.proof.races import prove_races
from kernelgen.samples.inputs import draw
from kernelgen.simulators.ptx import Report
from kernelgen.stages import lower
from kernelgen.targets.gpu.dialects.program import launches
from kernelgen.targets.gpu.launch.interpret import InterpretedEntry
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, INT8, DType
from kernelgen.verify import Status, verify

M, N = sym("M"), sym("N")


def transposed(rows: Dim, columns: Dim, dtype: DType = FLOAT32) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns, dtype=dtype)
    return w.desc("transposed", (x,), w.op("Transpose", x, shape=(columns, rows), perm=(1, 0)))


def turned(*shape: int) -> KernelDesc:
    """Channels first: [n, h, w, c] -> [n, c, h, w]."""
    n, h, wide, c = shape
    w, x = Writer(), tensor("x", *shape)
    return w.desc("turned", (x,), w.op("Transpose", x, shape=(n, c, h, wide), perm=(0, 3, 1, 2)))


def biased(rows: Dim, columns: Dim, dtype: DType = FLOAT32) -> KernelDesc:
    w, x, b = Writer(), tensor("x", rows, columns, dtype=dtype), tensor("b", columns, dtype=dtype)
    return w.desc("biased", (x, b), w.op("Add", x, b, shape=(rows, columns)))


def scaled(size: Dim) -> KernelDesc:
    w, x = Writer(), tensor("x", size)
    return w.desc("scaled", (x,), w.op("Mul", x, constant(2.0), shape=(size,)))


def column_spread(rows: int, columns: int) -> KernelDesc:
    """The largest element of each column less the smallest one: two results of one loop."""
    w, x = Writer(), tensor("x", rows, columns)
    top = w.op("ReduceMax", x, shape=(columns,), axis=(0,))
    low = w.op("ReduceMin", x, shape=(columns,), axis=(0,))
    return w.desc("column_spread", (x,), w.op("Sub", top, low, shape=(columns,)))


def both_ways(rows: int, columns: int, dtype: DType = FLOAT32) -> KernelDesc:
    """A result and its transpose."""
    w, x = Writer(), tensor("x", rows, columns, dtype=dtype)
    y = w.op("Mul", x, constant(2, dtype), shape=(rows, columns))
    return w.desc("both_ways", (x,), y, w.op("Transpose", y, shape=(columns, rows), perm=(1, 0)))


def columns_and_terms(rows: int, columns: int) -> KernelDesc:
    """Column sums of a product, which is a result too."""
    w, x, y = Writer(), tensor("x", rows, columns), tensor("y", rows, columns)
    terms = w.op("Mul", x, y, shape=(rows, columns))
    return w.desc("columns_and_terms", (x, y), terms, w.op("ReduceSum", terms, shape=(columns,), axis=(0,)))


def channel_sum(*shape: int) -> KernelDesc:
    """[n, c, h, w] -> [c]."""
    w, x = Writer(), tensor("x", *shape)
    return w.desc("channel_sum", (x,), w.op("ReduceSum", x, shape=(shape[1],), axis=(0, 2, 3)))


CASES = {
    "columns in slices that store their terms": columns_and_terms(128, 40),
    "slices of a few columns": columns_and_terms(130, 8),
    "channels": channel_sum(24, 40, 9, 61),
    "a result and its transpose": both_ways(70, 45),
    "halves both ways": both_ways(130, 66, FLOAT16),
    "a short side": transposed(90, 9),
    "squares": transposed(64, 96),
    "parts of squares": transposed(33, 65),
    "halves": transposed(70, 130, FLOAT16),
    "bytes": transposed(70, 66, INT8),
    "four dims": turned(2, 5, 7, 40),
    "unknown squares": transposed(M, N),
    "columns in slices": column_sum(300, 100),
    "columns beside the last block": column_spread(257, 5),
    "columns of unknown number": column_sum(300, N),
    "columns of unknown length": column_sum(M, 40),
    "a quarter of a warp": softmax(50, 64),
    "an eighth of a warp, unknown rows": softmax(M, 32),
    "rows of unknown length": biased(M, N),
    "halves of unknown length": biased(M, N, FLOAT16),
    "unknown rows": biased(M, 96),
    "one unknown length": scaled(N),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_the_reference_and_are_proved(name: str) -> None:
    assert prove_races(lower(CASES[name], Plan(), "gpu").nest)
    record = verify(CASES[name], "gpu")
    if record.reason == "unavailable":
        pytest.skip(record.message)
    assert (record.status, record.message) == (Status.PASSED, "")


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16])
def test_both_sides_of_a_transpose_are_coalesced(dtype: DType) -> None:
    (report,) = reports(transposed(128, 192, dtype))
    for kind in ("global load", "global store"):
        assert report.counts.of(kind).sectors_per_needed == 1.0
    assert report.counts.of("shared load").conflicts == report.counts.of("shared store").conflicts == 0


def test_a_short_side_needs_no_squares() -> None:
    (launch,) = launches(kernelgen.compile(transpose_add(1000, 4), "gpu").nest)
    assert launch.shared_bytes == 0


def test_rows_of_threads_share_long_columns() -> None:
    (launch,) = launches(kernelgen.compile(column_sum(256, 64), "gpu").nest)
    assert launch.threads == (32, 32, 1)
    (report,) = reports(column_sum(256, 64))
    assert report.counts.of("global load").sectors_per_needed == 1.0
    assert report.counts.of("shared load").conflicts == 0


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16])
def test_stores_in_two_orders_are_both_coalesced(dtype: DType) -> None:
    (report,) = reports(both_ways(128, 192, dtype))
    assert (
        report.counts.of("global load").sectors_per_needed == report.counts.of("global store").sectors_per_needed == 1
    )
    assert report.counts.of("shared load").conflicts == report.counts.of("shared store").conflicts == 0


def test_terms_that_are_stored_leave_columns_in_slices() -> None:
    (launch,) = launches(kernelgen.compile(columns_and_terms(128, 144), "gpu").nest)
    assert launch.threads == (32, 32, 1)


def test_threads_without_a_column_store_no_terms() -> None:
    assert kernelgen.compile(columns_and_terms(128, 144), "gpu").source.count("if (place < 144)") == 1
    assert "place <" not in kernelgen.compile(columns_and_terms(128, 160), "gpu").source


def test_threads_of_a_block_run_along_the_rows_of_a_channel() -> None:
    kernel = kernelgen.compile(channel_sum(128, 80, 73, 73), "gpu")
    bands = kernel.plan.bands
    assert bands is not None
    assert [loop.mark.kind.value for loop in bands[0].pieces[0].loops] == ["block", "serial", "thread"]
    assert extent(launches(kernel.nest)[0].blocks, {}) >= 400


def test_large_transposes_move_longer_runs() -> None:
    small, large = (launches(kernelgen.compile(transposed(size, size), "gpu").nest)[0] for size in (512, 4096))
    assert (small.shared_bytes, large.shared_bytes) == (32 * 33 * 4, 64 * 65 * 4)


@pytest.mark.parametrize("sizes", [(5, 256), (96, 1500), (2, 30000), (96, 30000)])
def test_a_block_for_each_row_needs_one_launch(sizes: tuple[int, int]) -> None:
    assert len(launches(kernelgen.compile(softmax(*sizes), "gpu").nest)) == 1


@pytest.mark.parametrize(("columns", "requests"), [(256, 2 * 3 * 2), (255, 8 * 3 * 2)])
def test_rows_of_unknown_length_move_in_wide_pieces_where_they_are_aligned(columns: int, requests: int) -> None:
    (report,) = reports(biased(M, N), {"M": 3, "N": columns})
    assert report.counts.of("global load").requests == requests


def test_whole_chunks_of_one_unknown_length_move_in_wide_pieces() -> None:
    (report,) = reports(scaled(N), {"N": 1024 + 32})
    assert report.counts.of("global load").requests == 1024 // (4 * 32) + 1


def turned_softmax(count: int) -> KernelDesc:
    """Powers of matrices over their sum, turned: a thread needs what others have computed, for each power."""
    w, x, outputs = Writer(), tensor("x", 40, 80, 60), []
    for k in range(count):
        powers = w.op("Exp", w.op("Mul", x, constant(k + 1.5), shape=x.shape), shape=x.shape)
        total = w.op("ReduceSum", powers, shape=(40, 1, 1), axis=(1, 2), keep_dims=True)
        shares = w.op("RealDiv", powers, total, shape=x.shape)
        outputs.append(w.op("Transpose", shares, shape=(40, 60, 80), perm=(0, 2, 1)))
    return w.desc("turned_softmax", (x,), *outputs)


@pytest.mark.parametrize(("count", "least"), [(1, 80 * 60 * 4), (6, 4 * 80 * 60 * 4)])
def test_what_a_block_shares_stays_within_the_limit(count: int, least: int) -> None:
    nest = lower(turned_softmax(count), Plan(), "gpu").nest
    verify_nest(nest)
    assert prove_races(nest)
    used = [launch.shared_bytes for launch in launches(nest)]
    assert least <= max(used) <= HOPPER.array_bytes + 16 * 1024


# ---------------------------------------------------------------- helpers


def reports(desc: KernelDesc, sizes: dict[str, int] | None = None) -> list[Report]:
    """What the launches of a kernel did."""
    kernel = kernelgen.compile(desc, "gpu")
    entry = kernel.entry
    assert isinstance(entry, InterpretedEntry)
    known = specialize(desc, sizes or {})
    outputs = [np.zeros([int(str(dim)) for dim in t.shape], t.dtype.numpy) for t in known.outputs]
    try:
        entry((*draw(known, 0), *outputs), tuple((sizes or {}).values()))
    except BackendUnavailable as error:
        pytest.skip(str(error))
    return entry.reports
