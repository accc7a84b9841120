"""The library of onnxruntime in this process, with its one pool of threads. Loading it takes a while, so it begins early.

Nothing of ours nor numpy is imported for it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from contextlib import suppress
from functools import cache, partial

from graphkernel.runtime.onnxruntime.c_interface import AS_REQUESTED, FATAL, Api
from kernelgen.system.cores import core_count
from kernelgen.system.meanwhile import Meanwhile
from kernelgen.system.named_tuples import NamedTuple


class Environment(NamedTuple):
    """The library with one pool of so many threads and one arena of memory, in the process that started them."""

    api: Api
    pointer: ctypes.c_void_p
    threads: int
    process: int

    @staticmethod
    def made(threads: int) -> Environment:
        """Raises ``OSError`` where the package has no library."""
        api = _api()
        options = api.made("CreateThreadingOptions")
        api.call("SetGlobalIntraOpNumThreads", options, threads)
        api.call("SetGlobalInterOpNumThreads", options, 1)
        api.call("SetGlobalSpinControl", options, 0)
        pointer = api.made("CreateEnvWithGlobalThreadPools", FATAL, b"graphkernel", options)
        api.release("ThreadingOptions", options)
        names, values = (ctypes.c_char_p * 1)(b"arena_extend_strategy"), (ctypes.c_size_t * 1)(AS_REQUESTED)
        arena = api.made("CreateArenaCfgV2", names, values, 1)
        api.call("CreateAndRegisterAllocator", pointer, api.memory, arena)
        api.release("ArenaCfg", arena)
        return Environment(api, pointer, threads, os.getpid())


def begin(threads: int | None) -> None:
    """Makes the environment of this process on a thread of its own, unless that was begun: on ``threads``, or as many as
    make sense. Whoever needs it waits for it."""
    if not _BEGUN:  # two threads that find nothing get the same from onnxruntime
        with suppress(OSError):  # whoever needs it meets that
            _api()  # this takes Python's lock, which a thread would wait for while modules are imported; the rest does not
        count = core_count() if threads in (None, 1) else threads
        _BEGUN.append(Meanwhile(partial(Environment.made, count)))


def environment(threads: int | None) -> Environment:
    """The one of this process, begun with so many ``threads`` where it is not yet. Raises ``OSError`` where the package has
    no library."""
    begin(threads)
    return _BEGUN[0].result()


_BEGUN: list[Meanwhile[Environment]] = []  # onnxruntime has one in a process


@cache
def _api() -> Api:
    found = importlib.util.find_spec("onnxruntime")
    package = os.path.join(os.path.dirname(found.origin), "capi") if found is not None and found.origin else ""
    for folder in (package, os.path.join(sys.prefix, "lib")):  # the latter in distributions that keep libraries apart
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            start, _, end = name.partition(".")
            if name == "onnxruntime.dll" or (
                start == "libonnxruntime" and (end.startswith("so") or end.endswith("dylib"))
            ):
                return Api(os.path.join(folder, name))
    raise OSError(f"{package}: there is no library of onnxruntime")
