"""How many threads this process may start: machines bound the tasks of a user, of a container, and the memory for stacks.

OpenMP ends the process when a thread is refused ("Thread creation failed"), so it is asked for no more than there are.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import cache

from kernelgen.system.cores import folders

_WITHOUT_BOUND = 1 << 30
_GONE_SECONDS = 1.0


def startable(wanted: int) -> int:
    """How many of so many threads can be started now."""
    return wanted if all_tasks() + wanted <= task_limit() else _tried(wanted)


def all_tasks() -> int:
    """The tasks of the machine; those that are counted against a limit are no more. Without bound where it is not told."""
    try:
        return int(_text("/proc/loadavg").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return _WITHOUT_BOUND


@cache
def task_limit() -> int:
    """What the smallest limit allows; 0 where memory is limited, since each thread takes a stack of it."""
    return min((*_limits_of_user(), *_limits_of_groups()), default=_WITHOUT_BOUND)


def _limits_of_user() -> Iterator[int]:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    tasks, memory = (resource.getrlimit(each)[0] for each in (resource.RLIMIT_NPROC, resource.RLIMIT_AS))
    if tasks != resource.RLIM_INFINITY:
        yield tasks
    if memory != resource.RLIM_INFINITY:
        yield 0


def _limits_of_groups() -> Iterator[int]:
    try:
        groups = _text("/proc/self/cgroup")
    except OSError:
        return
    yield from group_limits(groups, "/sys/fs/cgroup")


def group_limits(groups: str, root: str | os.PathLike[str]) -> Iterator[int]:
    """The bounds of the groups and those around them; ``groups`` as /proc lists them."""
    for folder in folders("pids", groups, root):
        try:
            yield int(_text(f"{folder}/pids.max"))
        except (OSError, ValueError):  # no such group is visible, or its bound is "max"
            continue


def _tried(wanted: int) -> int:
    gate = threading.Event()
    threads: list[threading.Thread] = []
    try:
        for _ in range(wanted):
            thread = threading.Thread(target=gate.wait, daemon=True)
            thread.start()
            threads.append(thread)
    except (RuntimeError, MemoryError):  # "can't start new thread"
        pass
    finally:
        gate.set()
    for thread in threads:
        thread.join()
        _wait_until_gone(thread)
    return len(threads)


def _wait_until_gone(thread: threading.Thread) -> None:
    """What has ended for Python is counted as a task until the system has cleared it away."""
    task, end = f"/proc/self/task/{thread.native_id}", time.monotonic() + _GONE_SECONDS
    while os.path.exists(task) and time.monotonic() < end:
        time.sleep(0)


def _text(path: str) -> str:
    with open(path) as file:
        return file.read()
