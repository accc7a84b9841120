"""The threads of parallel loops: one pool in a process, of at most as many as the machine gives, or the calling thread alone.

Kernels call ``run_region`` of the code that lies in :mod:`kernelgen.targets.cpu.runtime.team`. Workers are started by the first
loop that wants them. Between loops they look for the next one for some microseconds, then let others go first, then sleep:
loops that follow each other find them awake, and nobody else's time is taken.
A child process that was forked has none of its parent's workers, and starts its own.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from functools import cache

from kernelgen import options
from kernelgen.native.code import Code
from kernelgen.native.library import Library, function_address
from kernelgen.native.mapped import load_code
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.system.notices import warn_once

RUN, COUNT = "run_region", "region_threads"
"""What kernels call: ``run_region(function, context, nanoseconds)``, false where nobody else is to be had and nothing was run;
and ``region_threads()`` in that function."""

EXPORTS = (RUN, COUNT, "begin", "limit", "key", "tell")
SPINS, YIELDS = 200, 100
"""How often who waits looks again at once, and how often after letting others go first: about 10 and 40 us."""

WAKING_NANOSECONDS = 15_000
"""Of one thread's work, below which workers that sleep come too late: waking one costs its caller a microsecond, and takes it
about ten."""

MOST_WORKERS = 0x7FFF
_TELL = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int)
_BEGIN = ctypes.CFUNCTYPE(None)


class Team(NamedTuple):
    """The addresses of the functions that kernels call; kernels may run as long as this object lives."""

    functions: Mapping[str, int]
    library: Library
    tell: Callable[[int, int], None] | None = None


@cache
def team_of(code: Code) -> Team:
    """The one that all kernels of this process are linked against that were compiled with this code."""
    return made_team(load_code(code, {}), options.thread_count())


def made_team(library: Library, limit: int) -> Team:
    """One of at most ``limit`` threads. It stays for the life of the process, since its workers do.

    ``library`` has the functions :data:`EXPORTS` of :mod:`kernelgen.targets.cpu.runtime.team`.
    """
    functions = {name: library.addresses[name] for name in (RUN, COUNT)}
    key, begin, tell = _key(), _BEGIN(library.addresses["begin"]), _TELL(_tell)
    ctypes.c_size_t.from_address(library.addresses["key"]).value = key
    ctypes.c_void_p.from_address(library.addresses["tell"]).value = function_address(tell)
    ctypes.c_int32.from_address(library.addresses["limit"]).value = min(limit, MOST_WORKERS)
    made = Team(functions, library, tell)
    begin()
    os.register_at_fork(after_in_child=lambda: made and begin())
    return made


class Limited:
    """A context inside which parallel loops that the calling thread starts run on at most so many threads."""

    __slots__ = ("_before", "_threads")

    def __init__(self, threads: int) -> None:
        self._threads, self._before = threads, 0

    def __enter__(self) -> None:
        system, key = _system(), _key()
        self._before = before = system.pthread_getspecific(key) or 0
        system.pthread_setspecific(key, min(self._threads, before or self._threads))

    def __exit__(self, *_: object) -> None:
        _system().pthread_setspecific(_key(), self._before)


def _tell(started: int, wanted: int) -> None:
    warn_once(f"the machine refuses threads: kernels run on {1 + started} of {1 + wanted}")


@cache
def _key() -> int:
    """Under which a thread keeps how many threads its loops may take; nothing where it may take all."""
    key = ctypes.c_size_t()
    if _system().pthread_key_create(ctypes.byref(key), None) != 0:
        raise OSError("this system has no keys for threads left")
    return key.value


@cache
def _system() -> ctypes.CDLL:
    """The process and its C library."""
    system = ctypes.CDLL(None)
    system.pthread_getspecific.restype = ctypes.c_void_p
    system.pthread_getspecific.argtypes = (ctypes.c_size_t,)
    system.pthread_setspecific.argtypes = (ctypes.c_size_t, ctypes.c_void_p)
    return system
