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
from dataclasses import dataclass
from functools import cache, partial

from kernelgen import options
from kernelgen.notices import warn_once
from kernelgen.targets.cpu.module import Library, detect_host, function_address
from kernelgen.targets.cpu.objects import cached_library
from kernelgen.targets.cpu.openmp import OpenMP, runtime
from kernelgen.task_limits import startable

TEXT = """
@limit = global i32 1
@has_run = global i32 0
@key = global i64 0
@parallel = global ptr null
@allowed = global ptr null
@start = global ptr null

declare i32 @llvm.smin.i32(i32, i32)
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_setspecific(i64, ptr)
declare void @PyErr_SetInterrupt()

define void @run_region(ptr %region, ptr %context, i32 %threads, i32 %flags) {
  %limit = load i32, ptr @limit
  %is.alone = icmp sle i32 %limit, 1
  br i1 %is.alone, label %alone, label %team

alone:
  call void %region(ptr %context)
  ret void

team:
  %ask = load ptr, ptr @allowed
  %allowed = call i32 %ask()
  %wanted = call i32 @llvm.smin.i32(i32 %limit, i32 %allowed)
  store i32 1, ptr @has_run
  %key = load i64, ptr @key
  %note = call ptr @pthread_getspecific(i64 %key)
  %noted = ptrtoint ptr %note to i64
  %high = lshr i64 %noted, 32
  %asked = trunc i64 %high to i32
  %given = trunc i64 %noted to i32
  %is.started = icmp sge i32 %asked, %wanted
  br i1 %is.started, label %run, label %begin

begin:
  %start = load ptr, ptr @start
  %started = call i32 %start(i32 %wanted)
  %is.interrupted = icmp slt i32 %started, 0
  br i1 %is.interrupted, label %interrupted, label %keep

interrupted:
  call void @PyErr_SetInterrupt()
  br label %alone

keep:
  %wanted.wide = zext i32 %wanted to i64
  %started.wide = zext i32 %started to i64
  %shifted = shl i64 %wanted.wide, 32
  %both = or i64 %shifted, %started.wide
  %value = inttoptr i64 %both to ptr
  %unused = call i32 @pthread_setspecific(i64 %key, ptr %value)
  br label %run

run:
  %most = phi i32 [ %given, %team ], [ %started, %keep ]
  %count = call i32 @llvm.smin.i32(i32 %wanted, i32 %most)
  %is.one = icmp sle i32 %count, 1
  br i1 %is.one, label %alone, label %together

together:
  %parallel = load ptr, ptr @parallel
  call void %parallel(ptr %region, ptr %context, i32 %count, i32 %flags)
  ret void
}

define void @nothing(ptr %context) {
  ret void
}

define i32 @one_thread() {
  ret i32 1
}
"""
EXPORTS = ("limit", "has_run", "key", "parallel", "allowed", "start", "run_region", "nothing", "one_thread")
_PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
_START = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
_starting = threading.Lock()


@dataclass(frozen=True)
class Team:
    """The addresses of the OpenMP functions that kernels call; kernels may run as long as this object lives.

    ``start`` is what a thread calls before its first region.
    """

    functions: Mapping[str, int]
    library: Library
    start: Callable[[int], int] | None = None


@cache
def team() -> Team:
    """The one that all kernels of this process are linked against."""
    return made_team(runtime(), options.thread_count())


def made_team(openmp: OpenMP | None, limit: int) -> Team:
    """One of at most ``limit`` threads of a library; without a library, of the calling thread."""
    library = cached_library(TEXT, detect_host(), EXPORTS, {})[0]
    functions = {
        "GOMP_parallel": library.addresses["run_region"],
        "omp_get_num_threads": library.addresses["one_thread"],
    }
    key = ctypes.c_void_p(library.addresses["key"])
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
