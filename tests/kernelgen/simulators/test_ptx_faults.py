"""Planted faults: each broken twin of a kernel must be found, by the right kind; the kernel itself is clean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from kernelgen.simulators.ptx import KINDS, run
from tests.support import cuda_kernels as kernels
from tests.support.cuda_runs import compiled, launch


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


@dataclass(frozen=True)
class Launch:
    """A kernel's text with a grid, a block and arguments for it."""

    source: str
    grid: Any
    block: Any
    arguments: list[Any]
    options: dict[str, Any] = field(default_factory=dict)

    def kinds(self, old: str = "", new: str = "") -> frozenset[str]:
        """What is found when ``old`` is replaced by ``new``."""
        assert old in self.source
        copies = [one.copy() if isinstance(one, np.ndarray) else one for one in self.arguments]
        return launch(self.source.replace(old, new), self.grid, self.block, copies, **self.options).kinds()


ENDLESS = """
extern "C" __global__ void walk(int* x, int n, int step) {
  for (int i = threadIdx.x; i < n; i += step) x[i] = i;
}
"""
LAUNCHES = {
    "add": Launch(kernels.ADD, 8, 128, [zeros(1000), zeros(1000), zeros(1000), 1000]),
    "add4": Launch(kernels.ADD_FLOAT4, 2, 128, [zeros(1000), zeros(1000), 0.5, 250]),
    "row_sum": Launch(kernels.ROW_SUM, 3, 256, [zeros(3, 500), zeros(3), 500]),
    "tree_sum": Launch(kernels.TREE_SUM, 3, 128, [zeros(3, 128), zeros(3)]),
    "column_sum": Launch(kernels.COLUMN_SUM, 3, (32, 8), [zeros(50, 70), zeros(70), 50, 70]),
    "softmax": Launch(kernels.SOFTMAX, 2, 128, [zeros(2, 300), zeros(2, 300), 300]),
    "transpose": Launch(kernels.TRANSPOSE, (3, 2), (32, 8), [zeros(40, 70), zeros(70, 40), 40, 70]),
    "histogram": Launch(
        kernels.HISTOGRAM, 6, 128, [zeros(700, dtype=np.int32), zeros(16, dtype=np.int32), zeros(1), 700]
    ),
    "staged": Launch(
        kernels.STAGED_MATMUL, 1, 32, [zeros(16, 16, dtype=np.float16), zeros(8, 16, dtype=np.float16), zeros(16, 8)]
    ),
    "reverse": Launch(kernels.WARP_ROWS, 1, 64, [zeros(64, dtype=np.int32), zeros(64, dtype=np.int32)]),
    "partial": Launch(kernels.PARTIAL_SUMS, 4, 128, [zeros(512), zeros(1)]),
    "last_block": Launch(kernels.LAST_BLOCK, 5, 128, [zeros(5, 128), zeros(5), zeros(1, dtype=np.uint32), zeros(1)]),
    "table": Launch(kernels.LOCAL_TABLE, 1, 32, [zeros(8, dtype=np.int32), zeros(32, dtype=np.int32)]),
    "walk": Launch(ENDLESS, 1, 32, [zeros(100, dtype=np.int32), 100, 32], {"step_limit": 3000}),
}
BARRIER = "__syncthreads();"
FAULTS = [
    # name of the launch, what is replaced, by what, the kind that must be found
    ("row_sum", BARRIER, "", "shared-race"),
    ("tree_sum", f"part[t + o];\n    {BARRIER}", "part[t + o];", "shared-race"),
    ("transpose", BARRIER, "", "shared-race"),
    ("column_sum", BARRIER, "", "shared-race"),
    ("softmax", f"  {BARRIER}\n  return v;", "  return v;", "shared-race"),
    ("histogram", f"= 0;\n  {BARRIER}", "= 0;", "shared-race"),
    ("histogram", "atomicAdd(&mine[x[i]], 1)", "mine[x[i]] += 1", "shared-race"),
    ("reverse", "__syncwarp();", "", "shared-race"),
    ("reverse", "t ^ 31", "t ^ 63", "shared-race"),
    ("staged", BARRIER, "", "shared-race"),
    ("tree_sum", "if (t < o) part[t] +=", "if (t <= o && t + o < 128) part[t] +=", "shared-race"),
    ("partial", "atomicAdd(total, v)", "total[0] += v", "global-race"),
    ("histogram", "atomicAdd(total, 0.5f)", "total[0] += 0.5f", "global-race"),
    ("last_block", "__threadfence();", "", "global-race"),
    ("last_block", "atomicAdd(ticket, 1u)", "blockIdx.x", "global-race"),
    ("last_block", "last && t == 0", "blockIdx.x == 0 && t == 0", "global-race"),
    ("last_block", "atomicAdd(ticket, 1u)", "atomicAdd(ticket + 0 * (parts[blockIdx.x] = 0, 0), 1u)", "global-race"),
    ("last_block", "last = atomicAdd(ticket, 1u) == gridDim.x - 1;", "last = true; atomicAdd(ticket, 1u);", "global-race"),
    ("add", "z[i] =", "z[i / 2] =", "global-race"),
    ("add", "z[i] =", "z[i % 128] =", "global-race"),
    ("column_sum", "y[c] = sum", "y[threadIdx.x] = sum", "global-race"),
    ("tree_sum", f"if (t < o) part[t] += part[t + o];\n    {BARRIER}",
     f"if (t < o) {{ part[t] += part[t + o]; {BARRIER} }}", "divergent-barrier"),
    ("histogram", "if (i < n) {", "if (i >= n) return; {", "divergent-barrier"),
    ("row_sum", "__shfl_down_sync(0xffffffffu, sum, o);\n  if (threadIdx.x % 32",
     "__shfl_down_sync(0xffffu, sum, o);\n  if (threadIdx.x % 32", "bad-shuffle"),
    ("row_sum", "if (threadIdx.x < 32) {", "if (threadIdx.x < 8) {", "bad-shuffle"),
    ("partial", "v += __shfl", "if (threadIdx.x % 32 < 20) v += __shfl", "bad-shuffle"),
    ("add", "if (i < n)", "if (i <= n)", "out-of-bounds"),
    ("add", "x[i] +", "x[i + 1] +", "out-of-bounds"),
    ("add", "x[i] +", "x[i - 1] +", "out-of-bounds"),
    ("add4", "if (i >= n) return;", "", "out-of-bounds"),
    ("transpose", "tile[threadIdx.x][", "tile[threadIdx.x + 1][", "out-of-bounds"),
    ("row_sum", "part[threadIdx.x / 32] =", "part[threadIdx.x / 32 - 1] =", "out-of-bounds"),
    ("table", "kept[x[t & 7] & 7]", "kept[8 - (x[t & 7] & 7)]", "out-of-bounds"),
    ("add4", "float4 v = x[i]", "float4 v = *(const float4*)((const float*)x + 4 * i + (i > 3))", "misaligned"),
    ("row_sum", "if (threadIdx.x % 32 == 0)", "if (threadIdx.x % 64 == 0)", "uninitialised-shared"),
    ("tree_sum", "part[t] = x", "if (t != 77) part[t] = x", "uninitialised-shared"),
    ("table", "kept[x[k] & 7] =", "if (t != 3) kept[x[k] & 7] =", "uninitialised-local"),
    ("staged", 'asm volatile("cp.async.wait_group 0;");', "", "in-flight"),
    ("walk", "i += step", "i += step - 32", "endless-loop"),
    ("walk", "x[i] = i", "x[i == 70 ? (__trap(), 0) : i] = i", "trap"),
]  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHES)
def test_kernel_itself_is_clean(name: str) -> None:
    assert LAUNCHES[name].kinds() == set()


@pytest.mark.parametrize(("name", "old", "new", "kind"), FAULTS, ids=lambda value: str(value)[:24])
def test_planted_fault_is_found(name: str, old: str, new: str, kind: str) -> None:
    assert kind in LAUNCHES[name].kinds(old, new)


def test_buffer_that_is_promised_to_be_read_only() -> None:
    both = zeros(1000)
    assert "read-only-written" in launch(kernels.ADD_FLOAT4, 2, 128, [both, both, 0.5, 250]).kinds()


def test_register_that_nobody_wrote() -> None:
    text = compiled(kernels.GRID_STRIDE).ptx
    start = next(line for line in text.splitlines() if "mad.lo.s32" in line)
    arguments = [zeros(100), zeros(100), 2.0, 100]
    assert run(text, 1, 32, arguments).clean
    assert "uninitialised-register" in run(text.replace(start, ""), 1, 32, arguments).kinds()


def test_finding_names_kernel_line_thread_and_place() -> None:
    report = launch(kernels.ADD.replace("i < n", "i <= n"), 8, 128, [zeros(1000), zeros(1000), zeros(1000), 1000])
    (finding,) = report.findings
    assert not report.completed
    assert finding.source_line == 4
    assert finding.where == "block 7 thread 104"
    assert finding.message == "4 bytes at offset 4000, add_param_1 has 4000 bytes"
    assert "ld.global" in finding.text
    assert str(finding) in str(report)


def test_every_kind_is_planted() -> None:
    planted = {kind for *_, kind in FAULTS} | {"read-only-written", "uninitialised-register"}
    assert planted == set(KINDS)
