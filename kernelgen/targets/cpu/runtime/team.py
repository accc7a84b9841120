"""The machine code of the threads that run parallel loops, see :mod:`kernelgen.native.team`.

``gate`` is all that a caller and its workers agree on: in its high half the number of the loop, in its low half whether it is
closed (bit 31), how many workers may enter (15 bits) and how many have (16 bits). The caller opens it, takes chunks itself
until none are left, closes it, and waits for those that entered: a worker that sleeps or was put aside by the system holds
up nobody. A caller that finds another one at it is told so and runs its loop alone. It wakes one worker where fewer are awake
than may enter; whoever enters wakes the next. A short loop wakes nobody: it is run with those who look for work.
"""

from __future__ import annotations

import platform
import signal
from functools import cache

from kernelgen import options
from kernelgen.native.library import Library
from kernelgen.native.team import COUNT, EXPORTS, RUN, SPINS, WAKING_NANOSECONDS, YIELDS, Team, made_team, team_of
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.runtime.objects import cached_library

_PAUSE = "call void @llvm.x86.sse2.pause()" if platform.machine() in ("x86_64", "AMD64") else "fence acquire"

TEXT = f"""
@gate = global i64 2147483648, align 64
@left = global i32 0, align 64
@owned = global i32 0, align 64
@sleepers = global i32 0, align 64
@waits = global i32 0, align 64
@region = global ptr null, align 64
@context = global ptr null
@count = global i32 1
@limit = global i32 1, align 64
@workers = global i32 0
@asked = global i32 0
@key = global i64 0
@tell = global ptr null
@lock = global [64 x i8] zeroinitializer, align 64
@opened = global [64 x i8] zeroinitializer, align 64
@finished = global [64 x i8] zeroinitializer, align 64

declare i32 @llvm.smin.i32(i32, i32)
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare ptr @pthread_getspecific(i64)

define zeroext i1 @{RUN}(ptr %region, ptr %context, i64 %nanoseconds) {{
entry:
  %limit = load i32, ptr @limit
  %is.single = icmp sle i32 %limit, 1
  br i1 %is.single, label %alone, label %ask

ask:
  %key = load i64, ptr @key
  %note = call ptr @pthread_getspecific(i64 %key)
  %noted = ptrtoint ptr %note to i64
  %own = trunc i64 %noted to i32
  %is.free = icmp eq i32 %own, 0
  %mine = select i1 %is.free, i32 %limit, i32 %own
  %most.asked = call i32 @llvm.smin.i32(i32 %limit, i32 %mine)
  %there = load i32, ptr @workers
  %asleep = load atomic i32, ptr @sleepers monotonic, align 4
  %up = sub i32 %there, %asleep
  %at.hand = add i32 %up, 1
  %is.short = icmp slt i64 %nanoseconds, {WAKING_NANOSECONDS}
  %at.once = select i1 %is.short, i32 %at.hand, i32 %most.asked
  %wanted = call i32 @llvm.smin.i32(i32 %most.asked, i32 %at.once)
  %is.one = icmp sle i32 %wanted, 1
  br i1 %is.one, label %alone, label %take

take:
  %taken = cmpxchg ptr @owned, i32 0, i32 1 acq_rel monotonic
  %is.taken = extractvalue {{ i32, i1 }} %taken, 1
  br i1 %is.taken, label %workers, label %alone

alone:
  ret i1 false

workers:
  %others = sub i32 %wanted, 1
  %asked = load i32, ptr @asked
  %are.there = icmp sge i32 %asked, %others
  br i1 %are.there, label %open, label %start

start:
  call void @start(i32 %others)
  br label %open

open:
  %started = load i32, ptr @workers
  %most = call i32 @llvm.smin.i32(i32 %started, i32 %others)
  %count = add i32 %most, 1
  store ptr %region, ptr @region
  store ptr %context, ptr @context
  store i32 %count, ptr @count
  store atomic i32 0, ptr @left monotonic, align 4
  %before = load i64, ptr @gate
  %number = lshr i64 %before, 32
  %next = add i64 %number, 1
  %high = shl i64 %next, 32
  %most.wide = zext i32 %most to i64
  %low = shl i64 %most.wide, 16
  %gate = or i64 %high, %low
  store atomic i64 %gate, ptr @gate seq_cst, align 8
  call void @wake()
  call void %region(ptr %context)
  %closing = atomicrmw or ptr @gate, i64 2147483648 acq_rel
  %entered.wide = and i64 %closing, 65535
  %entered = trunc i64 %entered.wide to i32
  br label %wait

wait:
  %spins = phi i32 [ 0, %open ], [ %spins.next, %pause ], [ %spins.next, %yield ]
  %left = load atomic i32, ptr @left acquire, align 4
  %is.done = icmp eq i32 %left, %entered
  br i1 %is.done, label %done, label %not.yet

not.yet:
  %spins.next = add i32 %spins, 1
  %spin = icmp slt i32 %spins, {SPINS}
  br i1 %spin, label %pause, label %longer

pause:
  {_PAUSE}
  br label %wait

longer:
  %may.yield = icmp slt i32 %spins, {SPINS + YIELDS}
  br i1 %may.yield, label %yield, label %sleep

yield:
  %y = call i32 @sched_yield()
  br label %wait

sleep:
  %l1 = call i32 @pthread_mutex_lock(ptr @lock)
  store atomic i32 1, ptr @waits seq_cst, align 4
  br label %sleep.test

sleep.test:
  %left.now = load atomic i32, ptr @left seq_cst, align 4
  %all.left = icmp eq i32 %left.now, %entered
  br i1 %all.left, label %awake, label %sleep.on

sleep.on:
  %w = call i32 @pthread_cond_wait(ptr @finished, ptr @lock)
  br label %sleep.test

awake:
  store atomic i32 0, ptr @waits seq_cst, align 4
  %u1 = call i32 @pthread_mutex_unlock(ptr @lock)
  br label %done

done:
  store atomic i32 0, ptr @owned release, align 4
  ret i1 true
}}

define internal void @wake() {{
  %sleepers = load atomic i32, ptr @sleepers seq_cst, align 4
  %workers = load i32, ptr @workers
  %awake = sub i32 %workers, %sleepers
  %count = load i32, ptr @count
  %most = sub i32 %count, 1
  %are.few = icmp slt i32 %awake, %most
  br i1 %are.few, label %signal, label %done

signal:
  %l = call i32 @pthread_mutex_lock(ptr @lock)
  %u = call i32 @pthread_mutex_unlock(ptr @lock)
  %s = call i32 @pthread_cond_signal(ptr @opened)
  br label %done

done:
  ret void
}}

define internal ptr @work(ptr %unused) {{
entry:
  %at.first = load atomic i64, ptr @gate acquire, align 8
  %number.first = lshr i64 %at.first, 32
  br label %look

look:
  %last = phi i64 [ %number.first, %entry ], [ %number, %try ], [ %number, %ran ], [ %number, %tell ], [ %last, %awake ]
  br label %test

test:
  %spins = phi i32 [ 0, %look ], [ %spins.next, %pause ], [ %spins.next, %yield ]
  %seen = load atomic i64, ptr @gate acquire, align 8
  %seen.number = lshr i64 %seen, 32
  %is.new = icmp ne i64 %seen.number, %last
  br i1 %is.new, label %try, label %not.yet

not.yet:
  %spins.next = add i32 %spins, 1
  %spin = icmp slt i32 %spins, {SPINS}
  br i1 %spin, label %pause, label %longer

pause:
  {_PAUSE}
  br label %test

longer:
  %may.yield = icmp slt i32 %spins, {SPINS + YIELDS}
  br i1 %may.yield, label %yield, label %sleep

yield:
  %y = call i32 @sched_yield()
  br label %test

sleep:
  %l1 = call i32 @pthread_mutex_lock(ptr @lock)
  %more = atomicrmw add ptr @sleepers, i32 1 seq_cst
  br label %sleep.test

sleep.test:
  %now = load atomic i64, ptr @gate seq_cst, align 8
  %now.number = lshr i64 %now, 32
  %is.same = icmp eq i64 %now.number, %last
  br i1 %is.same, label %sleep.on, label %awake

sleep.on:
  %w = call i32 @pthread_cond_wait(ptr @opened, ptr @lock)
  br label %sleep.test

awake:
  %fewer = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %u1 = call i32 @pthread_mutex_unlock(ptr @lock)
  br label %look

try:
  %gate = phi i64 [ %seen, %test ], [ %other, %enter ]
  %number = lshr i64 %gate, 32
  %closed = and i64 %gate, 2147483648
  %is.open = icmp eq i64 %closed, 0
  %entered = and i64 %gate, 65535
  %shifted = lshr i64 %gate, 16
  %most = and i64 %shifted, 32767
  %is.room = icmp ult i64 %entered, %most
  %may.enter = and i1 %is.open, %is.room
  br i1 %may.enter, label %enter, label %look

enter:
  %inside = add i64 %gate, 1
  %exchange = cmpxchg ptr @gate, i64 %gate, i64 %inside acq_rel acquire
  %other = extractvalue {{ i64, i1 }} %exchange, 0
  %is.in = extractvalue {{ i64, i1 }} %exchange, 1
  br i1 %is.in, label %run, label %try

run:
  call void @wake()
  %region = load ptr, ptr @region
  %context = load ptr, ptr @context
  call void %region(ptr %context)
  %before = atomicrmw add ptr @left, i32 1 seq_cst
  %waits = load atomic i32, ptr @waits seq_cst, align 4
  %is.awaited = icmp ne i32 %waits, 0
  br i1 %is.awaited, label %tell, label %ran

tell:
  %l2 = call i32 @pthread_mutex_lock(ptr @lock)
  %u2 = call i32 @pthread_mutex_unlock(ptr @lock)
  %s = call i32 @pthread_cond_signal(ptr @finished)
  br label %look

ran:
  br label %look
}}

define internal void @start(i32 %wanted) {{
entry:
  %all = alloca [128 x i8], align 8
  %old = alloca [128 x i8], align 8
  %thread = alloca i64
  store i32 %wanted, ptr @asked
  %f = call i32 @sigfillset(ptr %all)
  %b = call i32 @pthread_sigmask(i32 {signal.SIG_SETMASK}, ptr %all, ptr %old)
  br label %test

test:
  %started = load i32, ptr @workers
  %is.more = icmp slt i32 %started, %wanted
  br i1 %is.more, label %one, label %done

one:
  %refused = call i32 @pthread_create(ptr %thread, ptr null, ptr @work, ptr null)
  %is.refused = icmp ne i32 %refused, 0
  br i1 %is.refused, label %tell, label %another

another:
  %next = add i32 %started, 1
  store i32 %next, ptr @workers
  br label %test

tell:
  %told = load ptr, ptr @tell
  %is.told = icmp ne ptr %told, null
  br i1 %is.told, label %call, label %done

call:
  call void %told(i32 %started, i32 %wanted)
  br label %done

done:
  %r = call i32 @pthread_sigmask(i32 {signal.SIG_SETMASK}, ptr %old, ptr null)
  ret void
}}

define void @begin() {{
  %m = call i32 @pthread_mutex_init(ptr @lock, ptr null)
  %o = call i32 @pthread_cond_init(ptr @opened, ptr null)
  %f = call i32 @pthread_cond_init(ptr @finished, ptr null)
  store i64 2147483648, ptr @gate
  store i32 0, ptr @left
  store i32 0, ptr @owned
  store i32 0, ptr @sleepers
  store i32 0, ptr @waits
  store i32 0, ptr @workers
  store i32 0, ptr @asked
  ret void
}}

define i32 @{COUNT}() {{
  %count = load i32, ptr @count
  ret i32 %count
}}
"""


@cache
def team() -> Team:
    """The one that all kernels of this process are linked against."""
    found = library()
    return team_of(found.code) if found.code else made_team(found, options.thread_count())


def library() -> Library:
    """The code, with variables of its own."""
    return cached_library(TEXT, detect_host(), EXPORTS, {})[0]
