"""The machine code that starts parallel loops, see :mod:`kernelgen.native.team`: what it asks and notes between two calls."""

from __future__ import annotations

from functools import cache

from kernelgen import options
from kernelgen.native.library import Library
from kernelgen.native.openmp import runtime
from kernelgen.native.team import Team, made_team, team_of
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.runtime.objects import cached_library

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


@cache
def team() -> Team:
    """The one that all kernels of this process are linked against."""
    found = library()
    return team_of(found.code) if found.code else made_team(found, runtime(), options.thread_count())


def library() -> Library:
    """The code, with variables of its own."""
    return cached_library(TEXT, detect_host(), EXPORTS, {})[0]
