"""Threads of parallel loops: how many, and what becomes of them in a child process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from kernelgen.native.team import RUN, Limited, Team, made_team
from kernelgen.nest.nodes import Load, LoopKind, Nest, Store
from kernelgen.targets.cpu import TARGET
from kernelgen.targets.cpu.runtime.team import library
from tests.support.forks import SECONDS, in_forked_child
from tests.support.nests import I, J, block, buffer, call, loop, output
from tests.support.regions import run_region, threads_of_a_region

ROWS, COLUMNS = 2000, 500


def parallel_nest() -> Nest:
    x, y = buffer("x", ROWS, COLUMNS), output("y", ROWS, COLUMNS)
    row = loop(J, COLUMNS, Store(y, (I, J), call("exp", Load(x, (I, J)))))
    return Nest("rows", (), (x, y), block(loop(I, ROWS, row, kind=LoopKind.PARALLEL)))


def right_answer() -> bool:
    nest = parallel_nest()
    source = TARGET.emit(nest)
    assert f"@{RUN}(" in source
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


@pytest.fixture(scope="module")
def four() -> Team:
    return made_team(library(), 4)


def test_a_region_runs_on_as_many_threads_as_are_allowed(four: Team) -> None:
    threads_of_a_region(four, 4)  # the first one starts the workers, which may come too late for it
    assert len(threads_of_a_region(four, 4)) == 4
    for most in (3, 1, 9):
        with Limited(most), Limited(8):
            assert len(threads_of_a_region(four, min(most, 4))) == min(most, 4)
    assert len(threads_of_a_region(four, 4)) == 4
    assert len(threads_of_a_region(made_team(library(), 1), 1)) == 1


def test_workers_that_fell_asleep_come_again(four: Team) -> None:
    for pause in (0.0, 0.05, 0.2):
        time.sleep(pause)
        assert len(threads_of_a_region(four, 4)) == 4


def test_nobody_waits_for_workers_that_do_not_come(four: Team) -> None:
    """Regions that are over before a worker looks: all work was done by whoever came."""
    count = 2000
    done = list[int]()
    for _ in range(count):
        run_region(four, lambda: done.append(1))
    assert count <= len(done) <= 4 * count


def test_a_caller_waits_for_those_that_came(four: Team) -> None:
    """Also for those that take so long that it falls asleep."""
    me = threading.get_native_id()
    for pause in (0.0, 0.001, 0.05):
        left = list[int]()

        def work(pause: float = pause, left: list[int] = left) -> None:
            if threading.get_native_id() == me:
                time.sleep(0.01)
            else:
                time.sleep(0.01 + pause)
                left.append(1)

        run_region(four, work)
        there = len(left)
        time.sleep(2 * pause)
        assert len(left) == there


def test_a_caller_that_finds_the_workers_taken_runs_alone(four: Team) -> None:
    found = list[int]()
    inner = threading.Thread(target=lambda: found.append(len(threads_of_a_region(four, 1))))

    def work() -> None:
        if threading.current_thread() is threading.main_thread():
            inner.start()
            inner.join(SECONDS)

    run_region(four, work)
    assert found == [1]
    assert len(threads_of_a_region(four, 4)) == 4


def test_many_callers_at_once_are_right() -> None:
    assert right_answer()
    wrong = list[int]()
    threads = [threading.Thread(target=lambda: wrong.extend(not right_answer() for _ in range(10))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert wrong == [False] * 40


def test_a_child_has_workers_of_its_own(four: Team) -> None:
    threads_of_a_region(four, 4)

    def starts_anew() -> bool:
        threads_of_a_region(four, 4)
        return len(threads_of_a_region(four, 4)) == 4

    assert in_forked_child(starts_anew) == 0
    assert len(threads_of_a_region(four, 4)) == 4


REFUSED = """
import resource
from tests.kernelgen.targets.test_cpu_team import right_answer
from kernelgen.native.team import made_team
from kernelgen.targets.cpu.runtime.team import library
from tests.support.regions import threads_of_a_region
assert right_answer()
team = made_team(library(), 64)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (20 << 20),) * 2)
threads_of_a_region(team, 1)
assert len(threads_of_a_region(team, 1)) < 64
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="memory is limited so on Linux")
def test_where_threads_are_refused_fewer_run_and_that_is_told_once() -> None:
    found = subprocess.run(
        [sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stderr.count("the machine refuses threads: kernels run on ") == 1


def test_signals_go_to_the_threads_of_python(four: Team) -> None:
    """Workers block all of them: a handler is called although they are the ones that are awake."""
    masks = list[set[signal.Signals | int]]()
    me = threading.get_native_id()

    def work() -> None:
        if threading.get_native_id() != me:
            masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        time.sleep(0.02)

    threads_of_a_region(four, 4)
    run_region(four, work)
    assert masks
    assert all({signal.SIGINT, signal.SIGTERM} <= mask for mask in masks)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_short_loop_wakes_nobody_and_is_shared_with_who_looks_for_work(four: Team) -> None:
    here, shared, deadline = threading.get_native_id(), False, time.monotonic() + SECONDS
    time.sleep(0.05)  # all sleep
    seen = set[int]()
    run_region(four, lambda: seen.add(threading.get_native_id()), 1000)
    assert seen == {here}
    while not shared and time.monotonic() < deadline:
        run_region(four, lambda: None)  # wakes them
        seen, end = set[int](), time.monotonic() + 0.01

        def wait(seen: set[int] = seen, end: float = end) -> None:
            seen.add(threading.get_native_id())
            while len(seen) < 2 and time.monotonic() < end:
                time.sleep(0)

        run_region(four, wait, 1000)
        shared = len(seen) > 1
    assert shared
