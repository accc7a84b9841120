"""The model of a kernel's time: what it says of kernels whose limits are known, and that it says so without running them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from kernel_examples import Writer, constant, softmax, tensor

import kernelgen
from kernelgen.errors import BackendUnavailable
from kernelgen.machines.gpu.timed import H100, H200, MACHINES, V100
from kernelgen.simulators.ptx import Blank
from kernelgen.targets.entries import LaunchEstimate
from kernelgen.targets.gpu.launch.nvrtc import Resources
from kernelgen.targets.gpu.launch.time_model import estimate, resident_blocks
from kernelgen.tensor.dims import sym
from tests.support.cuda_runs import compiled, launch

SCALE = """extern "C" __global__ void scale(const float* x, float* y) {{
  long i = blockIdx.x * 256L + threadIdx.x;
  y[{place}] = x[{place}] * 2.0f;
}}"""
SHARED = """extern "C" __global__ void turn(float* y) {{
  __shared__ float tile[{rows} * 32];
  for (int k = 0; k < 64; ++k) {{ tile[threadIdx.x * {rows} + k % {rows}] = k; __syncwarp(); }}
  y[threadIdx.x + 32 * blockIdx.x] = tile[threadIdx.x * {rows}];
}}"""
BLOCKS = 1 << 16


def scaled(rows: int) -> kernelgen.Kernel:
    w, x = Writer(), tensor("x", rows, 1024)
    return kernelgen.compile(w.desc("scaled", (x,), w.op("Mul", x, constant(2), shape=(rows, 1024))), "gpu")


def estimated(source: str, grid: int, block: int, sizes: Sequence[int], machine=H200) -> LaunchEstimate:
    (used,) = compiled(source).resources.values()
    report = launch(source, grid, block, [Blank(size) for size in sizes], blocks=8)
    return estimate(report, used, 0, sizes, machine)


def test_neighbouring_accesses_reach_the_copy_limit() -> None:
    size = BLOCKS * 256 * 4
    found = estimated(SCALE.format(place="i"), BLOCKS, 256, (size, size))
    assert found.bound == "memory"
    assert found.moved == 2 * size == found.sectors * 32
    assert found.seconds == pytest.approx(H200.start + 2 * size / (H200.bandwidth * H200.attainable))


def test_scattered_accesses_cost_more_than_their_bytes() -> None:
    size = BLOCKS * 256 * 4
    place = f"i % {BLOCKS} * 256 + i / {BLOCKS}"
    near, far = (estimated(SCALE.format(place=p), BLOCKS, 256, (size, size)) for p in ("i", place))
    assert far.sectors == 8 * near.sectors
    assert far.bound == "l2"
    assert far.seconds > 3 * near.seconds


def test_bank_conflicts_cost_time() -> None:
    free, conflicting = (
        estimated(SHARED.format(rows=rows), BLOCKS, 32, (BLOCKS * 128,)).limits["shared"] for rows in (33, 32)
    )
    assert conflicting > 8 * free


def test_a_thousand_threads_of_one_block_do_not_fill_a_device() -> None:
    desc = softmax(1, 65536)
    try:
        found = kernelgen.compile(desc, "gpu").estimate("H200")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert found is not None
    assert found.seconds > 2 * 65536 * 4 * 2 / H200.bandwidth


def test_resident_blocks_follow_the_narrowest_resource() -> None:
    assert resident_blocks(H100, warps=8, registers=32, shared=0) == 8  # 64 warps
    assert resident_blocks(H100, warps=1, registers=16, shared=0) == 32  # blocks
    assert resident_blocks(H100, warps=8, registers=128, shared=0) == 2  # 65536 registers
    assert resident_blocks(H100, warps=8, registers=32, shared=100 << 10) == 2
    assert resident_blocks(V100, warps=8, registers=32, shared=90 << 10) == 1


def test_a_kernel_shows_its_resources_and_the_estimate_without_being_called() -> None:
    kernel = scaled(1 << 14)
    try:
        found = kernel.resources.estimate
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert found is not None
    (launched,) = found.launches
    assert launched.registers > 0
    assert launched.spill_bytes == 0
    assert 0 < launched.occupancy <= 1
    assert "estimated on H200" in str(found)
    slow, fast = kernel.estimate("V100"), kernel.estimate("H200")
    assert slow is not None
    assert fast is not None
    assert slow.seconds > 4 * fast.seconds


def test_symbols_get_their_sizes_with_the_question() -> None:
    kernel = kernelgen.compile(softmax(sym("M"), 1024), "gpu")
    assert kernel.resources.estimate is None
    try:
        few, many = kernel.estimate("H200", M=1000), kernel.estimate("H200", M=100_000)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert few is not None
    assert many is not None
    assert many.seconds > 50 * (few.seconds - few.launches[0].start)


def test_targets_without_launches_have_no_estimate() -> None:
    kernel = kernelgen.compile(softmax(4, 8), "python")
    assert kernel.estimate() is None
    assert kernel.resources.estimate is None


def test_spills_are_told() -> None:
    used = Resources(registers=255, spill_stores=8, spill_loads=16)
    size = 256 * 4
    report = launch(SCALE.format(place="i"), 1, 256, [Blank(size), Blank(size)])
    assert estimate(report, used, 0, (size, size), H200).spill_bytes == 24


def test_every_machine_says_where_its_figures_are_from() -> None:
    assert all(machine.sources and MACHINES[name] is machine for name, machine in MACHINES.items())
