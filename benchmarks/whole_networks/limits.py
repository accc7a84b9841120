"""What one core of the machine does at most: float32 fused multiply-adds that need nothing, and a read past the cache."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from benchmarks.machine import Read
from kernelgen.native.library import Library
from kernelgen.targets.cpu.runtime.llvm import compile_object, detect_host, link

CHAINS = 12
"""Sums that grow at once: as many multiply-adds are under way as any processor has room for."""

STEPS = 200_000
READ_BYTES = 256 << 20
ROUNDS = 7


@dataclass(frozen=True)
class Limits:
    """GFLOP/s, where a multiply-add is two, and GB/s."""

    compute: float
    bandwidth: float


def limits() -> Limits:
    """The best of some rounds, by processor time."""
    read = Read(READ_BYTES)
    operations = 2 * CHAINS * _lanes() * STEPS
    multiply = _multiply()
    return Limits(operations / _least(lambda: multiply(STEPS)) / 1e9, READ_BYTES / _least(read) / 1e9)


def multiply_adds(operations: int) -> Callable[[], object]:
    """A call that takes as long as so many multiplications and additions of float32 at least do."""
    multiply, steps = _multiply(), max(1, operations // (2 * CHAINS * _lanes()))
    return lambda: multiply(steps)


def _least(call: Callable[[], object]) -> float:
    found: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def _lanes() -> int:
    return max(1, detect_host().vector_bytes // 4)


def _multiply() -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(_library().addresses["multiply"])


@cache
def _library() -> Library:
    """Kept for good: the code goes when the library does."""
    return link(compile_object(_source(), detect_host()), ("multiply",), {})


def _source() -> str:
    vector, name = f"<{_lanes()} x float>", f"llvm.fma.v{_lanes()}f32"
    sums = [f"  %s{k} = phi {vector} [ %start{k}, %entry ], [ %n{k}, %loop ]" for k in range(CHAINS)]
    more = [
        f"  %n{k} = call {vector} @{name}({vector} %s{k}, {vector} %factor, {vector} %start0)" for k in range(CHAINS)
    ]
    starts = [f"  %start{k} = fadd <W> %start{k - 1}, %start0" for k in range(1, CHAINS)]  # equal sums would be one
    total = ["  %t0 = fadd <W> %n0, %n1", *(f"  %t{k} = fadd <W> %t{k - 1}, %n{k + 1}" for k in range(1, CHAINS - 1))]
    lines = [
        "define float @multiply(i64 %count) {",
        "entry:",
        "  %number = uitofp i64 %count to float",
        "  %first = insertelement <W> poison, float %number, i64 0",
        "  %start0 = shufflevector <W> %first, <W> poison, <L x i32> zeroinitializer",
        *starts,
        "  %factor = fdiv <W> %start0, %start0",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *sums,
        *more,
        "  %next = add i64 %i, 1",
        "  %more = icmp ult i64 %next, %count",
        "  br i1 %more, label %loop, label %end",
        "end:",
        *total,
        f"  %found = extractelement <W> %t{CHAINS - 2}, i64 0",
        "  ret float %found",
        "}",
        f"declare {vector} @{name}({vector}, {vector}, {vector})",
    ]
    return "\n".join(lines).replace("<W>", vector).replace("<L x", f"<{_lanes()} x")
