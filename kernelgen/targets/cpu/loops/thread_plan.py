"""Whether threads are started for a loop marked PARALLEL."""

from __future__ import annotations

from kernelgen.nest.nodes import For, Num
from kernelgen.plan import ThreadChoice
from kernelgen.targets.cpu.loops.planned_loops import ChosenLoop
from kernelgen.targets.cpu.loops.work_estimate import TICKS_PER_NANOSECOND, work

MIN_WORK_NANOSECONDS = 3_000
"""Below this, even a worker that looks for work comes too late: to share lines of memory with it takes half a microsecond."""


def has_threads(loop: For) -> bool:
    """What the loop carries, or what is chosen for it."""
    plan = loop.plan if isinstance(loop, ChosenLoop) else None
    return (plan if isinstance(plan, ThreadChoice) else choose_threads(loop)).threads


def choose_threads(loop: For) -> ThreadChoice:
    """None when the loop is certainly too short for threads; symbolic sizes are tested when the kernel runs."""
    time = work(loop)
    if not isinstance(time, Num):
        return ThreadChoice(True, f"sizes decide: from {MIN_WORK_NANOSECONDS} ns on")
    spent = time.value // TICKS_PER_NANOSECOND
    return ThreadChoice(spent >= MIN_WORK_NANOSECONDS, f"about {spent} ns of {MIN_WORK_NANOSECONDS}")
