"""Finding an OpenMP runtime: the one in this process, else the system's, else that of the intel-openmp package."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from kernelgen.options import idle_workers_sleep

NAMES = ("GOMP_parallel", "omp_get_num_threads")


@cache
def runtime() -> Mapping[str, int]:
    """Addresses of :data:`NAMES`, empty when there is no OpenMP library."""
    with idle_workers_sleep():
        for library in _candidates():
            try:
                return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in NAMES}
            except AttributeError:
                continue
    return {}


def _candidates() -> Iterator[ctypes.CDLL]:
    yield ctypes.CDLL(None)
    for path in (*_loaded_libraries(), "libgomp.so.1", *_packaged_libraries()):
        try:
            yield ctypes.CDLL(path)
        except OSError:
            continue


def _loaded_libraries() -> list[str]:
    """OpenMP libraries that some package loaded privately; a second runtime would compete for the cores."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return []
    paths = {line.split()[-1] for line in maps.splitlines() if "/" in line}
    return sorted(path for path in paths if Path(path).name.startswith(("libgomp", "libiomp5")))


def _packaged_libraries() -> list[str]:
    return [str(path) for path in sorted(Path(sys.prefix, "lib").glob("libiomp5.*"))]
