"""Threads of parallel loops: how many, and what becomes of them in a child process."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from kernelgen.nest.nodes import Load, LoopKind, Nest, Store
from kernelgen.targets.cpu import TARGET
from tests.support.forks import SECONDS, in_forked_child
from tests.support.nests import I, J, block, buffer, call, loop, output

ROWS, COLUMNS = 2000, 500


def parallel_nest() -> Nest:
    x, y = buffer("x", ROWS, COLUMNS), output("y", ROWS, COLUMNS)
    row = loop(J, COLUMNS, Store(y, (I, J), call("exp", Load(x, (I, J)))))
    return Nest("rows", (), (x, y), block(loop(I, ROWS, row, kind=LoopKind.PARALLEL)))


def right_answer() -> bool:
    nest = parallel_nest()
    source = TARGET.emit(nest)
    assert "GOMP_parallel" in source
    x, y = np.full((ROWS, COLUMNS), 0.5, np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    TARGET.load(source, nest)((x, y), ())
    return bool(np.allclose(y, np.exp(np.float32(0.5))))


def test_a_child_runs_what_its_parent_has_run() -> None:
    assert right_answer()
    assert in_forked_child(right_answer) == 0
    assert in_forked_child(lambda: in_forked_child(right_answer) == 0) == 0
    assert right_answer()


def test_a_child_of_a_thread_runs_too() -> None:
    assert right_answer()
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(in_forked_child(right_answer)))
    thread.start()
    thread.join(2 * SECONDS)
    assert codes == [0]


def test_a_pool_of_forked_workers_runs() -> None:
    assert right_answer()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.apply_async(right_answer).get(SECONDS)


@pytest.mark.parametrize("asked", ["100000", "2000", "²", "", "0", "1"])
def test_any_number_of_threads_may_be_asked_for(asked: str) -> None:
    program = "from tests.kernelgen.targets.test_cpu_team import right_answer; assert right_answer()"
    environment = {**os.environ, "OMP_NUM_THREADS": asked}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert found.returncode == 0, found.stderr
    assert ("asks for more threads" in found.stderr) == (asked in ("100000", "2000"))
