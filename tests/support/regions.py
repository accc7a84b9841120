"""Parallel regions whose threads can be told apart."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

from kernelgen.native.team import RUN, Team

SECONDS = 10.0
_REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


LONG = 10**9


def run_region(team: Team, work: Callable[[], None], nanoseconds: int = LONG) -> None:
    """Every thread of a region does the work, or this one alone."""
    run = ctypes.CFUNCTYPE(ctypes.c_bool, _REGION, ctypes.c_void_p, ctypes.c_int64)(team.functions[RUN])
    if not run(_REGION(lambda _: work()), None, nanoseconds):
        work()


def threads_of_a_region(team: Team, expected: int) -> set[int]:
    """The threads that came to a region which stays open until so many are there, or for some seconds, and a moment longer."""
    seen, deadline = set[int](), time.monotonic() + SECONDS

    def come() -> None:
        seen.add(threading.get_native_id())
        while len(seen) < expected and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.02)  # whoever comes too many

    run_region(team, come)
    return seen
