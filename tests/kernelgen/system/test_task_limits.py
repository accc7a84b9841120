"""How many threads a process may start, and that kernels ask for no more."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgen.native import team
from kernelgen.native.openmp import runtime
from kernelgen.system import notices, task_limits
from kernelgen.system.task_limits import group_limits, startable
from kernelgen.targets.cpu.runtime.team import library

_REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_RUN = ctypes.CFUNCTYPE(None, _REGION, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``give(3)``: from now on the machine lets Python start three threads more."""
    monkeypatch.setattr(task_limits, "task_limit", lambda: 0)
    start, left = threading.Thread.start, [0]

    def counted(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    return lambda count: left.__setitem__(0, count)


@pytest.mark.parametrize(("given", "wanted"), [(0, 0), (0, 5), (3, 5), (5, 5), (9, 5)])
def test_what_no_limit_promises_is_tried(give: Callable[[int], None], given: int, wanted: int) -> None:
    before = threading.active_count()
    give(given)
    assert startable(wanted) == min(given, wanted)
    assert threading.active_count() == before


@pytest.mark.parametrize("limit", [105, 200])
def test_what_the_limits_promise_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, give: Callable[[int], None], limit: int
) -> None:
    monkeypatch.setattr(task_limits, "task_limit", lambda: limit)
    monkeypatch.setattr(task_limits, "all_tasks", lambda: 100)
    assert startable(5) == 5
    assert startable(limit) == 0


@pytest.mark.parametrize(
    ("files", "groups", "limits"),
    [
        ({"a/pids.max": "max", "a/b/pids.max": "40", "pids.max": "900"}, "0::/a/b", [40, 900]),
        ({"pids/a/pids.max": "7", "pids/pids.max": "max"}, "5:memory:/a\n4:pids:/a\n0::/", [7]),
        ({"pids.max": "nonsense"}, "0::/", []),
        ({}, "0::/not/visible", []),
    ],
)
def test_groups_bound_their_tasks(tmp_path: Path, files: dict[str, str], groups: str, limits: list[int]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(group_limits(groups, tmp_path)) == limits


def test_a_region_runs_on_as_many_threads_as_there_are(give: Callable[[int], None]) -> None:
    """Each calling thread is asked for once; what it was given it keeps, and one that is refused all runs alone."""
    notices.warn_once.cache_clear()
    openmp = runtime()
    if openmp is None:
        pytest.skip("no OpenMP library")
    made = team.made_team(library(), openmp, 4)
    run, teams = _RUN(made.functions["GOMP_parallel"]), list[int]()

    def threads_of_a_region() -> int:
        seen = list[int]()
        run(_REGION(lambda _: seen.append(threading.get_native_id())), None, 0, 0)
        return len(seen)

    def work() -> None:
        teams.extend(threads_of_a_region() for _ in range(3))

    allowed = min(4, ctypes.CFUNCTYPE(ctypes.c_int)(openmp.functions["omp_get_max_threads"])())
    for given in (8, 1, 0):
        teams.clear()
        give(1 + given)  # the calling thread itself is one
        caller = threading.Thread(target=work)
        caller.start()
        caller.join()
        assert teams == [min(allowed, 1 + given)] * 3


def test_an_interrupt_while_a_team_starts_is_raised_behind_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    openmp = runtime()
    if openmp is None:
        pytest.skip("no OpenMP library")
    made = team.made_team(library(), openmp, 2)
    run, region = _RUN(made.functions["GOMP_parallel"]), _REGION(made.library.addresses["nothing"])

    def interrupted(_: int) -> int:
        raise KeyboardInterrupt

    def kernel() -> None:
        run(region, None, 0, 0)
        sum(range(1000))  # where the interpreter looks for signals

    monkeypatch.setattr(team, "startable", interrupted)
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell starts jobs in the background without it
    try:
        with pytest.raises(KeyboardInterrupt):
            kernel()
    finally:
        signal.signal(signal.SIGINT, before)
