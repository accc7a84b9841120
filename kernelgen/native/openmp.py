"""Finding an OpenMP runtime: the one in this process, else the system's, else that of the intel-openmp package."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from kernelgen.options import idle_workers_sleep

NO_OPENMP = (
    "there is no OpenMP library; install libgomp (on Debian: apt-get install libgomp1), or: pip install intel-openmp"
)
OF_THIS_PROCESS = "of this process"
NAMES = ("GOMP_parallel", "omp_get_num_threads", "omp_get_max_threads", "omp_set_num_threads")


class OpenMP(NamedTuple):
    """Addresses of :data:`NAMES`; ``is_shared`` when the library was in the process before, so that others may use it.

    ``name`` is its file, or says that it is part of the process.
    """

    functions: Mapping[str, int]
    is_shared: bool
    name: str = OF_THIS_PROCESS


@cache
def runtime() -> OpenMP | None:
    """None when there is no OpenMP library."""
    with idle_workers_sleep():
        for library, is_shared in _candidates():
            try:
                functions = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in NAMES}
            except AttributeError:
                continue
            return OpenMP(functions, is_shared, library._name or OF_THIS_PROCESS)
    return None


@contextmanager
def limited(threads: int) -> Generator[None]:
    """Parallel loops that the calling thread starts inside run on at most so many threads."""
    found = runtime()
    if found is None:
        yield
        return
    get = ctypes.CFUNCTYPE(ctypes.c_int)(found.functions["omp_get_max_threads"])
    put = ctypes.CFUNCTYPE(None, ctypes.c_int)(found.functions["omp_set_num_threads"])
    before = get()
    put(min(threads, before))
    try:
        yield
    finally:
        put(before)


def _candidates() -> Iterator[tuple[ctypes.CDLL, bool]]:
    yield ctypes.CDLL(None), True
    loaded = [(path, True) for path in _loaded_libraries()]
    for path, is_shared in (*loaded, *((path, False) for path in ("libgomp.so.1", *_packaged_libraries()))):
        try:
            yield ctypes.CDLL(path), is_shared
        except OSError:
            continue


def _loaded_libraries() -> list[str]:
    """OpenMP libraries that some package loaded privately; a second runtime would compete for the cores."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "/" in line}
    except OSError:
        return []
    return sorted(path for path in paths if os.path.basename(path).startswith(("libgomp", "libiomp5")))


def _packaged_libraries() -> list[str]:
    from glob import glob  # where there is a library, nobody looks for others

    return sorted(glob(os.path.join(sys.prefix, "lib", "libiomp5.*")))
