"""The counters against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelgen.simulators.ptx import Report
from tests.support import cuda_kernels as kernels
from tests.support.cuda_runs import clean

COPY = """
extern "C" __global__ void copy(const float* x, float* y, int stride, int shift) {
  y[threadIdx.x] = x[threadIdx.x * stride + shift];
}
"""
BANKS = """
extern "C" __global__ void banks(const float* x, float* y, int stride) {
  __shared__ float line[32 * 33];
  for (int k = threadIdx.x; k < 32 * 33; k += 32) line[k] = 1;
  __syncthreads();
  y[threadIdx.x] = line[threadIdx.x * stride];
}
"""
WIDE_BANKS = """
extern "C" __global__ void wide(float4* y, int stride) {
  __shared__ float4 line[256];
  for (int k = threadIdx.x; k < 256; k += 32) line[k] = make_float4(1, 1, 1, 1);
  __syncthreads();
  y[threadIdx.x] = line[threadIdx.x * stride];
}
"""


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("stride", "shift", "sectors"),
    [(1, 0, 4), (1, 1, 5), (2, 0, 8), (8, 0, 32), (0, 5, 1)],
    ids=["together", "not aligned to a sector", "every second", "a sector each", "all the same"],
)
def test_sectors_of_a_warp(stride: int, shift: int, sectors: int) -> None:
    report = clean(COPY, 1, 32, [zeros(300), zeros(32), stride, shift])
    load = report.counts.of("global load")
    assert (load.requests, load.bytes, load.sectors) == (1, 128, sectors)
    assert load.sectors_per_needed == sectors / 4


@pytest.mark.parametrize(("stride", "cycles"), [(1, 1), (2, 2), (4, 4), (32, 32), (33, 1), (0, 1)])
def test_bank_conflicts_of_a_warp(stride: int, cycles: int) -> None:
    load = clean(BANKS, 1, 32, [zeros(1), zeros(32), stride]).counts.of("shared load")
    assert (load.requests, load.cycles, load.conflicts) == (1, cycles, cycles - 1)


@pytest.mark.parametrize(("stride", "cycles"), [(1, 4), (2, 8), (8, 32), (0, 4)])
def test_bank_conflicts_of_wide_accesses(stride: int, cycles: int) -> None:
    """16 bytes a lane are served by quarter warps, so 4 cycles are the least."""
    load = clean(WIDE_BANKS, 1, 32, [zeros(128), stride]).counts.of("shared load")
    assert (load.requests, load.cycles, load.conflicts) == (1, cycles, cycles - 4)


def test_vectors_need_a_quarter_of_the_requests() -> None:
    narrow = clean(kernels.ADD, 8, 128, [zeros(1024), zeros(1024), zeros(1024), 1024]).counts
    wide = clean(kernels.ADD_FLOAT4, 2, 128, [zeros(1024), zeros(1024), 1.0, 256]).counts
    assert (narrow.of("global store").requests, wide.of("global store").requests) == (32, 8)
    assert narrow.of("global store").sectors == wide.of("global store").sectors == 128
    assert wide.of("global load").sectors_per_needed == 1


def test_padding_removes_the_conflicts_of_a_transpose() -> None:
    def transpose(source: str) -> Report:
        return clean(source, (2, 2), (32, 8), [zeros(64, 64), zeros(64, 64), 64, 64])

    padded, plain = transpose(kernels.TRANSPOSE), transpose(kernels.TRANSPOSE.replace("[33]", "[32]"))
    assert padded.counts.of("shared load").conflicts == 0
    assert plain.counts.of("shared load").conflicts == 31 * plain.counts.of("shared load").requests
    assert padded.counts.of("global load").sectors_per_needed == 1
    assert padded.counts.of("global store").sectors_per_needed == 1


def test_barriers_and_classes() -> None:
    counts = clean(kernels.TREE_SUM, 3, 128, [zeros(3, 128), zeros(3)]).counts
    assert counts.barriers == 3 * 8
    assert counts.instructions["barrier"] == 3 * 8 * 4
    assert counts.instructions["store"] >= 3 * 4
    assert counts.approximate == ()


def test_softmax_reads_its_input_once() -> None:
    x = zeros(4, 512)
    counts = clean(kernels.SOFTMAX, 4, 128, [x, zeros(4, 512), 512]).counts
    assert counts.of("global load").bytes == x.nbytes
    assert counts.of("global load").sectors * 32 == x.nbytes
    assert "ex2.approx" in counts.approximate


def test_atomics_are_counted_apart() -> None:
    counts = clean(kernels.PARTIAL_SUMS, 4, 128, [zeros(512), zeros(1)]).counts
    assert counts.of("global atomic").requests == 16
    assert counts.of("global atomic").bytes == 16 * 4
    assert counts.instructions["warp"] == 16 * 5


def test_report_is_text_too() -> None:
    text = str(clean(kernels.ROW_SUM, 3, 256, [zeros(3, 500), zeros(3), 500]))
    assert "row_sum: grid (3, 1, 1), block (256, 1, 1), 3 of 3 blocks ran" in text
    # the middle row begins in the middle of a sector, so that its 15 full warps touch 5 sectors each, not 4
    assert "global load: 48 requests, 6000 bytes, 204 sectors, 1.09 per 32 bytes" in text
    assert "shared store: 24 requests, 96 bytes, 24 cycles, 0 bank conflicts" in text
