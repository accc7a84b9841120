"""Memory: generic addresses, constants, dynamic shared memory, structs, atomics of every kind, asynchronous groups."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.simulators.ptx.state.race_detector import Shadow, Visitors
from tests.support.cuda_runs import clean, launch

RANDOM = np.random.default_rng(11)
COMMON = """
__constant__ int weights[4] = {3, 1, 4, 1};
struct Pair { int first; float second; };
extern "C" __global__ void common(const int* x, int* y, Pair pair, bool flag) {
  extern __shared__ int pool[];
  int t = threadIdx.x;
  pool[t] = x[t];
  const int* from = flag ? pool : x;  // a generic address
  __syncthreads();
  y[t] = from[t ^ 1] * weights[t % 4] + pair.first + (int)pair.second;
}
"""
PIPELINE = """
extern "C" __global__ void pipeline(const int4* x, int4* y, int n) {
  __shared__ int4 stage[2][32];
  unsigned to = (unsigned)__cvta_generic_to_shared(&stage[0][threadIdx.x]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\\ncp.async.commit_group;" :: "r"(to), "l"(x + threadIdx.x));
  for (int k = 0; k < n; ++k) {
    if (k + 1 < n) {
      unsigned next = to + ((k + 1) % 2) * 512;
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(next), "l"(x + (k + 1) * 32 + threadIdx.x));
    }
    asm volatile("cp.async.commit_group;\\ncp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    y[k * 32 + threadIdx.x] = stage[k % 2][threadIdx.x ^ 1];
    __syncthreads();
  }
}
"""
PART = """
extern "C" __global__ void part(const float* x, float4* y, int left) {
  __shared__ float4 line[32];
  unsigned to = (unsigned)__cvta_generic_to_shared(&line[threadIdx.x]);
  int bytes = min(max(left - (int)threadIdx.x * 4, 0), 4) * 4;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\\ncp.async.wait_all;"
    :: "r"(to), "l"(x + threadIdx.x * 4), "r"(bytes) : "memory");
  y[threadIdx.x] = line[threadIdx.x];
}
"""


def test_generic_constant_dynamic_and_struct() -> None:
    x = RANDOM.integers(0, 100, 64).astype(np.int32)
    pair = np.array([5], np.int32).tobytes() + np.array([2.5], np.float32).tobytes()
    for flag in (True, False):
        y = np.zeros(64, np.int32)
        clean(COMMON, 1, 64, [x, y, pair, np.bool_(flag)], dynamic_shared=256)
        assert (y == x[np.arange(64) ^ 1] * np.tile([3, 1, 4, 1], 16) + 7).all()


def test_dynamic_shared_memory_that_is_too_small() -> None:
    arguments = [np.zeros(64, np.int32), np.zeros(64, np.int32), bytes(8), np.bool_(True)]
    report = launch(COMMON, 1, 64, arguments, dynamic_shared=252)
    assert report.kinds() == {"out-of-bounds"}
    assert report.findings[0].message == "4 bytes at offset 252, shared memory has 252 bytes"


@pytest.mark.parametrize(
    ("call", "start", "expected"),
    [
        ("atomicAdd(y, v)", 1, lambda v: 1 + v.sum()),
        ("atomicSub(y, v)", 1, lambda v: 1 - v.sum()),
        ("atomicMax(y, v)", 3, lambda v: v.max()),
        ("atomicMin(y, v)", 3, lambda v: min(3, v.min())),
        ("atomicOr(y, v)", 0, lambda v: np.bitwise_or.reduce(v)),
        ("atomicAnd(y, v | 64)", 255, lambda v: 255 & np.bitwise_and.reduce(v | 64)),
        ("atomicXor(y, v)", 5, lambda v: 5 ^ np.bitwise_xor.reduce(v)),
        ("atomicInc((unsigned*)y, 9u)", 4, lambda v: (4 + len(v)) % 10),
        ("atomicDec((unsigned*)y, 9u)", 4, lambda v: (4 - len(v)) % 10),
        ("for (int old = *(volatile int*)y, seen;; old = seen) if ((seen = atomicCAS(y, old, old + v)) == old) break", 0, None),
    ],
)  # fmt: skip
def test_atomics(call: str, start: int, expected: object) -> None:
    source = f'extern "C" __global__ void k(const int* x, int* y) {{ int v = x[threadIdx.x]; {call}; }}'
    x, y = RANDOM.integers(1, 100, 48).astype(np.int32), np.array([start], np.int32)
    report = launch(source, 1, 48, [x, y])
    if callable(expected):
        assert report.clean, report
        assert y[0] == expected(x)
    else:  # the plain first read is not ordered with the others' atomics, which is said; the sum is right
        assert report.kinds() == {"global-race"}
        assert y[0] == x.sum()


def test_atomics_return_what_was_there() -> None:
    source = 'extern "C" __global__ void k(int* x, int* y) { y[threadIdx.x] = atomicAdd(x + threadIdx.x % 2, 1); }'
    x, y = np.zeros(2, np.int32), np.zeros(64, np.int32)
    clean(source, 1, 64, [x, y])
    assert sorted(y[::2]) == sorted(y[1::2]) == list(range(32))


def test_atomics_on_halves_and_doubles() -> None:
    source = """
    #include <cuda_fp16.h>
    extern "C" __global__ void k(__half2* h, double* d) { atomicAdd(h, __floats2half2_rn(1.f, 0.5f)); atomicAdd(d, 0.25); }
    """
    half, double = np.zeros(2, np.float16), np.zeros(1)
    clean(source, 2, 32, [half, double])
    assert half.tolist() == [64, 32]
    assert double.tolist() == [16]


def test_two_stages_of_asynchronous_copies() -> None:
    x = RANDOM.integers(0, 1000, (5, 32, 4)).astype(np.int32)
    y = np.zeros_like(x)
    clean(PIPELINE, 1, 32, [x, y, 5])
    assert (y == x[:, np.arange(32) ^ 1]).all()


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("wait_group 1", "wait_group 2", {"in-flight"}),
        ("__syncthreads();\n    y", "y", {"shared-race"}),
        ("];\n    __syncthreads();", "];", {"shared-race"}),
        ("[k % 2]", "[(k + 1) % 2]", {"in-flight", "uninitialised-shared"}),
    ],
    ids=["waits for too few", "no barrier after the wait", "no barrier before reuse", "reads the wrong stage"],
)
def test_faults_of_a_pipeline(old: str, new: str, kinds: set[str]) -> None:
    x = np.zeros((5, 32, 4), np.int32)
    assert old in PIPELINE
    assert launch(PIPELINE.replace(old, new), 1, 32, [x, np.zeros_like(x), 5]).kinds() & kinds


def test_asynchronous_copy_fills_up_with_zeros() -> None:
    x, y = np.arange(1, 71, dtype=np.float32), np.ones(128, np.float32)
    clean(PART, 1, 32, [x, y, 70])
    assert (y[:70] == x).all()
    assert (y[70:] == 0).all()


def visitors(*lanes: tuple[int, int, int, int]) -> Visitors:
    """Lanes by block, thread, block barriers and warp barriers so far."""
    blocks, threads, epochs, syncs = (np.array(column, np.int64) for column in zip(*lanes, strict=True))
    return Visitors(blocks << 10 | threads, epochs, syncs)


@pytest.mark.parametrize(
    ("first", "second", "races"),
    [
        ((0, 1, 0, 0), (0, 1, 0, 0), False),
        ((0, 1, 0, 0), (0, 2, 0, 0), True),
        ((0, 1, 0, 0), (0, 2, 1, 0), False),
        ((0, 1, 0, 0), (0, 2, 0, 1), False),
        ((0, 1, 0, 0), (0, 40, 0, 1), True),
        ((0, 1, 0, 0), (1, 1, 5, 5), True),
    ],
    ids=[
        "same thread",
        "same warp",
        "after a barrier",
        "after a warp barrier",
        "another warp's barrier",
        "another block",
    ],
)
def test_order_of_two_accesses(
    first: tuple[int, int, int, int], second: tuple[int, int, int, int], races: bool
) -> None:
    word = np.array([3])
    for before, after in (
        ("write", "write"),
        ("write", "read"),
        ("read", "write"),
        ("update", "read"),
        ("write", "update"),
    ):
        shadow = Shadow(64, 4)
        assert getattr(shadow, before)(word, visitors(first)) is None
        assert (getattr(shadow, after)(word, visitors(second)) is not None) == races, (before, after)
    for harmless in ("read", "update"):
        shadow = Shadow(64, 4)
        getattr(shadow, harmless)(word, visitors(first))
        assert getattr(shadow, harmless)(word, visitors(second)) is None


def test_every_reader_counts_for_a_later_write() -> None:
    """Readers of one warp, of one block and of several blocks are kept as a group, whose order is that of all."""
    word = np.zeros(2, np.int64)
    for one, other, writer, races in [
        ((0, 1, 0, 0), (0, 2, 0, 0), (0, 1, 0, 0), True),
        ((0, 1, 0, 0), (0, 2, 0, 0), (0, 3, 0, 1), False),
        ((0, 1, 0, 0), (0, 40, 0, 0), (0, 3, 0, 1), True),
        ((0, 1, 0, 0), (0, 40, 0, 0), (0, 3, 1, 0), False),
        ((0, 1, 0, 0), (1, 1, 0, 0), (0, 3, 1, 0), True),
        ((0, 1, 0, 0), (0, 1, 1, 0), (0, 2, 1, 0), True),
    ]:
        shadow, together = Shadow(8, 4), Shadow(8, 4)
        shadow.read(word[:1], visitors(one))
        shadow.read(word[:1], visitors(other))
        together.read(word, visitors(one, other))
        assert (shadow.write(word[:1], visitors(writer)) is not None) == races
        if one[2] == other[2]:
            assert (together.write(word[:1], visitors(writer)) is not None) == races


def test_two_writes_of_one_instruction() -> None:
    wrong = Shadow(64, 4).write(np.array([1, 2, 2]), visitors((0, 0, 0, 0), (0, 1, 0, 0), (0, 2, 0, 0)))
    assert wrong is not None
    assert wrong.tolist() == [False, True, False]
