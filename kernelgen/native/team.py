"""The threads of parallel loops: an OpenMP team of at most as many as the machine gives, or the calling thread alone.

Kernels call ``GOMP_parallel`` of this module, which hands on to OpenMP with a number of threads. OpenMP keeps a team for each
thread that calls, and ends the process when the machine refuses it a thread: so a team is started here, one at a time, with
as many as there are. What a thread asked for and was given it keeps under a key of its own.

A child process that was forked has none of its parent's threads, but its copy of OpenMP counts on them and would wait for
ever: there parallel loops run on the calling thread once the parent's have run on others.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

from kernelgen import options
from kernelgen.native.code import Code
from kernelgen.native.library import Library, function_address
from kernelgen.native.mapped import load_code
from kernelgen.native.openmp import NO_OPENMP, OpenMP, runtime
from kernelgen.system.notices import warn_once
from kernelgen.system.task_limits import startable

_PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
_START = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
_starting = threading.Lock()


class Team(NamedTuple):
    """The addresses of the OpenMP functions that kernels call; kernels may run as long as this object lives.

    ``start`` is what a thread calls before its first region.
    """

    functions: Mapping[str, int]
    library: Library
    start: Callable[[int], int] | None = None


@cache
def team_of(code: Code) -> Team:
    """The one that all kernels of this process are linked against that were compiled with this code."""
    return made_team(load_code(code, {}), runtime(), options.thread_count())


def made_team(library: Library, openmp: OpenMP | None, limit: int) -> Team:
    """One of at most ``limit`` threads of a library of OpenMP; without such a library, of the calling thread.

    ``library`` has the functions :data:`EXPORTS` of :mod:`kernelgen.targets.cpu.runtime.team`.
    """
    functions = {
        "GOMP_parallel": library.addresses["run_region"],
        "omp_get_num_threads": library.addresses["one_thread"],
    }
    key = ctypes.c_void_p(library.addresses["key"])
    if openmp is None and limit > 1:
        warn_once(f"kernels run on one thread of {limit}: {NO_OPENMP}")
    if openmp is None or ctypes.CDLL(None).pthread_key_create(key, None) != 0:
        return Team(functions, library)
    start = _START(partial(_started, openmp, library.addresses["nothing"]))
    _pointer(library, "parallel").value = openmp.functions["GOMP_parallel"]
    _pointer(library, "allowed").value = openmp.functions["omp_get_max_threads"]
    _pointer(library, "start").value = function_address(start)
    _number(library, "limit").value = limit
    _number(library, "has_run").value = openmp.is_shared
    os.register_at_fork(after_in_child=partial(_stay_alone, library))
    return Team({**functions, "omp_get_num_threads": openmp.functions["omp_get_num_threads"]}, library, start)


def _started(openmp: OpenMP, nothing: int, wanted: int) -> int:
    """Starts the calling thread's team of at most so many, and says of how many; below 0 when it was interrupted.

    No exception passes through a kernel: what interrupted here is raised again behind it.
    """
    try:
        with _starting:
            count = 1 + startable(wanted - 1)
            _PARALLEL(openmp.functions["GOMP_parallel"])(nothing, None, count, 0)
    except KeyboardInterrupt:
        return -1
    if count < wanted:
        warn_once(f"the machine refuses threads: kernels run on {count} of {wanted}")
    return count


def _stay_alone(library: Library) -> None:
    if _number(library, "has_run").value:
        _number(library, "limit").value = 1


def _number(library: Library, name: str) -> ctypes.c_int32:
    return ctypes.c_int32.from_address(library.addresses[name])


def _pointer(library: Library, name: str) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(library.addresses[name])
