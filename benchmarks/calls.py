"""What a call costs besides its kernels: ``python -m benchmarks.calls``, in microseconds of this thread's processor time.

A graph of one small kernel, with a new result and into a given one; a chain of kernels that cannot be fused, which shows what
lies between two of them; and steps that do nothing, on one thread and as empty parallel loops on all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import graphkernel as gk
from kernelgen.native.library import Library
from kernelgen.native.table import Table, TableStep
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.runtime.objects import cached_library
from kernelgen.targets.cpu.runtime.team import team
from kernelgen.targets.cpu.runtime.wrapper_ir import caller

STEPS = 150
ROUNDS, OFTEN = 25, 2000
EMPTY = """
declare i1 @run_region(ptr, ptr, i64)
define internal void @nothing(ptr %context) { ret void }
define void @step(ptr %arguments, ptr %sizes) { ret void }
define void @region(ptr %arguments, ptr %sizes) {
  %done = call i1 @run_region(ptr @nothing, ptr null, i64 1000000)
  ret void
}
"""


def microseconds(call: Callable[[], object], often: int = OFTEN) -> float:
    """The least of the rounds."""
    least = float("inf")
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(often):
            call()
        least = min(least, (time.thread_time() - start) / often)
    return least * 1e6


def chain(kernels: int) -> gk.Executable:
    """So many kernels one after the other."""
    steps = "".join(f" v{n + 1}: f32[8] = K(v{n})\n" for n in range(kernels))
    kernel = "kernel K(a: f32[8]) { t: f32[8] = Neg(a)\n return t }\n"
    return gk.compile(gk.parse(f"{kernel}graph f(v0: f32[8]) {{\n{steps} return v{kernels}\n}}"), 0, host="numpy")


def empty_steps(name: str) -> Table:
    """A table of steps that do nothing."""
    threads = team()
    library: Library = cached_library(EMPTY, detect_host(), ("step", "region"), threads.functions)[0]
    step = TableStep(name, library.addresses[name], (), ())
    return Table((), (step,) * STEPS, caller(), False, (library, threads))


def _refused() -> None:
    """Where numpy's layout is not the known one, tables are called in another way, which is not measured here."""
    raise SystemExit("numpy's layout is not the known one")


def main() -> None:
    """Prints one figure a line."""
    x, out = np.ones(8, np.float32), (np.empty(8, np.float32),)
    one, many = chain(1), chain(STEPS)
    steps, regions = (empty_steps(name).fast or _refused for name in ("step", "region"))
    rows = {
        "a call of one kernel, new result": microseconds(lambda: one(x)),
        "a call of one kernel, given result": microseconds(lambda: one(x, out=out)),
        f"a call of {STEPS} kernels, given result": microseconds(lambda: many(x, out=out), 200),
        f"{STEPS} empty steps": microseconds(steps),
        f"{STEPS} empty parallel loops": microseconds(regions, 200),
    }
    for name, cost in rows.items():
        print(f"{name:40} {cost:8.3f} us")


if __name__ == "__main__":
    main()
