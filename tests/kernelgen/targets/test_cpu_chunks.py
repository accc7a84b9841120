"""Chunks of parallel loops: together they are all iterations, whoever takes them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from kernelgen.native.entry import ENTRY
from kernelgen.native.library import function_address
from kernelgen.native.team import COUNT, RUN
from kernelgen.nest.index import add, minimum, subtract
from kernelgen.nest.nodes import Accumulate, For, Load, LoopKind, Nest, Num, Var
from kernelgen.targets.cpu import TARGET
from kernelgen.targets.cpu.runtime.entry import entry_of
from kernelgen.targets.cpu.runtime.llvm import compile_object, detect_host, link
from tests.support.nests import I, J, block, buffer, call, loop, output

K = Var("k")
COLUMNS = 8000
REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@pytest.mark.parametrize("others", [None, 0, 1, 3])
@pytest.mark.parametrize("threads", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(("extent", "step"), [(1, 1), (16, 1), (45, 1), (45, 7), (48, 48), (1000, 16)])
def test_every_iteration_runs_once_however_many_threads_come(
    others: int | None, threads: int, extent: int, step: int
) -> None:
    """Threads come one after the other, ``others`` of them behind the first; where it is None nobody is to be had."""
    x, y = buffer("x", extent, COLUMNS), output("y", extent, COLUMNS)
    inside = loop(J, COLUMNS, Accumulate(y, (add(I, K), J), "add", call("exp", Load(x, (add(I, K), J)))))
    rows = For(K.name, Num(0), minimum(Num(step), subtract(Num(extent), I)), block(inside))
    outer = For(I.name, Num(0), Num(extent), block(rows), LoopKind.PARALLEL, step)
    nest = Nest("rows", (), (x, y), block(outer))

    @ctypes.CFUNCTYPE(ctypes.c_bool, REGION, ctypes.c_void_p, ctypes.c_int64)
    def run_region(work, context, nanoseconds) -> bool:
        for _ in range(0 if others is None else 1 + others):
            work(context)
        return others is not None

    count = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: threads)
    symbols = {RUN: function_address(run_region), COUNT: function_address(count)}
    source = TARGET.emit(nest)
    assert f"@{RUN}(" in source
    host = detect_host()
    kernel = entry_of(nest, link(compile_object(source, host), (ENTRY,), symbols))
    result = np.zeros((extent, COLUMNS), np.float32)
    kernel((np.zeros_like(result), result), ())
    np.testing.assert_array_equal(result, 1)
