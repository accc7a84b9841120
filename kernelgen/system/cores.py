"""How many threads make sense: the processors that this process may use, and what ``OMP_NUM_THREADS`` asks for.

Processors are bounded by the affinity of the process and by the quotas of its control groups: a container that is given
half of a machine of 64 sees all 64, and threads beyond its share only wait.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from functools import cache

from kernelgen.system.notices import warn_once

VARIABLE = "OMP_NUM_THREADS"
_WITHOUT_BOUND = 1 << 20


def thread_count(environ: Mapping[str, str]) -> int | None:
    """``OMP_NUM_THREADS``, at most :func:`core_count`, where less than was asked for is told once; None without a number."""
    try:
        asked = int(environ.get(VARIABLE, "").partition(",")[0])
    except ValueError:
        return None
    if asked < 1:
        return None
    if asked > (cores := core_count()):
        warn_once(f"{VARIABLE} asks for more threads than the {cores} processors of this process; {cores} are used")
    return min(asked, cores)


def core_count() -> int:
    """The processors that this process may use; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, _quota())


@cache
def _quota() -> int:
    try:
        return quota(_text("/proc/self/cgroup"), "/sys/fs/cgroup")
    except OSError:
        return _WITHOUT_BOUND


def quota(groups: str, root: str | os.PathLike[str]) -> int:
    """The smallest quota of the groups and those around them in processors, rounded up; ``groups`` as /proc lists them."""
    found = (_share(folder) for folder in folders("cpu", groups, root))
    return math.ceil(min(found, default=_WITHOUT_BOUND))


def folders(controller: str, groups: str, root: str | os.PathLike[str]) -> Iterator[str]:
    """The folders with the files of a controller, innermost group first.

    Args:
        controller: what is asked for: ``cpu``, ``memory`` or ``pids``.
        groups: the text of ``/proc/self/cgroup``.
        root: where the control groups are mounted.
    """
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            group = os.path.join(root, controller if controllers else "", path.lstrip("/"))
            while group != os.path.dirname(group):
                yield group
                group = os.path.dirname(group)


def _share(folder: str) -> float:
    """Processors by the files of one group, of version 2 or 1."""
    try:
        if os.path.exists(f"{folder}/cpu.max"):
            time, period = _text(f"{folder}/cpu.max").split()
        else:
            time, period = (_text(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
        return int(time) / int(period) if int(time) > 0 < int(period) else _WITHOUT_BOUND
    except (OSError, ValueError):  # no such group is visible, or its time is "max"
        return _WITHOUT_BOUND


def _text(path: str) -> str:
    with open(path) as file:
        return file.read()
