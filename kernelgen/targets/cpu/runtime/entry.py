"""Source to kernels that can be called."""

from __future__ import annotations

from functools import cache

from kernelgen.native.entry import ENTRY, CpuEntry
from kernelgen.native.library import Library
from kernelgen.native.processor import processor
from kernelgen.native.team import RUN, Team
from kernelgen.nest.nodes import Nest, Num
from kernelgen.targets.base import arguments
from kernelgen.targets.cpu.loops.work_estimate import TICKS_PER_NANOSECOND, work
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.runtime.objects import cached_library
from kernelgen.targets.cpu.runtime.team import team
from kernelgen.targets.cpu.runtime.wrapper_ir import caller

LOCK_NANOSECONDS = 5_000
"""A kernel that runs longer lets other Python threads run; symbolic ones count as longer."""


def load_entry(source: str, nest: Nest) -> CpuEntry:
    """Machine code for the source, linked against the threads of this process where it has parallel loops."""
    threads = team() if f"@{RUN}(" in source else None
    library, from_disk = cached_library(source, detect_host(), (ENTRY,), threads.functions if threads else {})
    return entry_of(nest, library, threads, from_disk)


def entry_of(nest: Nest, library: Library, threads: Team | None = None, from_disk: bool = False) -> CpuEntry:
    """The loaded code of a ``nest``, from ``library``, as a kernel on so many ``threads``; ``from_disk`` tells whether
    it was compiled before.
    """
    return CpuEntry(
        nest.name, arguments(nest), nest.symbols, library, caller(), _is_long(nest), from_disk, threads, _flags()
    )


@cache
def _flags() -> tuple[str, ...]:
    return processor().words_for(detect_host().features)


def _is_long(nest: Nest) -> bool:
    time = work(nest.body)
    return not isinstance(time, Num) or time.value > LOCK_NANOSECONDS * TICKS_PER_NANOSECOND
