"""The threads of parallel loops: an OpenMP team of at most as many as the machine gives, or the calling thread alone.

Kernels call ``GOMP_parallel`` of this module, which hands on to OpenMP with a number of threads. A child process that was
forked has none of its parent's threads, but its copy of OpenMP counts on them and would wait for ever: there parallel
loops run on the calling thread once the parent's have run on others.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

from kernelgen import options
from kernelgen.targets.cpu.module import Library, detect_host
from kernelgen.targets.cpu.objects import cached_library
from kernelgen.targets.cpu.openmp import OpenMP, runtime

TEXT = """
@limit = global i32 1
@has_run = global i32 0
@parallel = global ptr null
@allowed = global ptr null

declare i32 @llvm.smin.i32(i32, i32)

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
  %count = call i32 @llvm.smin.i32(i32 %limit, i32 %allowed)
  store i32 1, ptr @has_run
  %parallel = load ptr, ptr @parallel
  call void %parallel(ptr %region, ptr %context, i32 %count, i32 %flags)
  ret void
}

define i32 @one_thread() {
  ret i32 1
}
"""
EXPORTS = ("limit", "has_run", "parallel", "allowed", "run_region", "one_thread")


@dataclass(frozen=True)
class Team:
    """The addresses of the OpenMP functions that kernels call; kernels may run as long as this object lives."""

    functions: Mapping[str, int]
    library: Library


@cache
def team() -> Team:
    """The one that all kernels of this process are linked against."""
    return made_team(runtime(), options.thread_count())


def made_team(openmp: OpenMP | None, limit: int) -> Team:
    """One of at most ``limit`` threads of a library; without a library, of the calling thread."""
    library = cached_library(TEXT, detect_host(), EXPORTS, {})[0]
    count = library.addresses["one_thread"]
    if openmp is not None:
        count = openmp.functions["omp_get_num_threads"]
        _pointer(library, "parallel").value = openmp.functions["GOMP_parallel"]
        _pointer(library, "allowed").value = openmp.functions["omp_get_max_threads"]
        _number(library, "limit").value = limit
        _number(library, "has_run").value = openmp.is_shared
        os.register_at_fork(after_in_child=partial(_stay_alone, library))
    return Team({"GOMP_parallel": library.addresses["run_region"], "omp_get_num_threads": count}, library)


def _stay_alone(library: Library) -> None:
    if _number(library, "has_run").value:
        _number(library, "limit").value = 1


def _number(library: Library, name: str) -> ctypes.c_int32:
    return ctypes.c_int32.from_address(library.addresses[name])


def _pointer(library: Library, name: str) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(library.addresses[name])
