"""What decides about compiled code beside what is compiled: this program's sources, libraries, Python, processor, threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

from kernelgen import options
from kernelgen.native.processor import processor
from kernelgen.system.cores import core_count
from kernelgen.system.object_cache import cache_key

PACKAGES, LIBRARIES = ("kernelgen",), ("numpy", "islpy", "llvmlite")
"""What kernels are made by."""


def surroundings(packages: tuple[str, ...] = PACKAGES, libraries: tuple[str, ...] = LIBRARIES) -> str:
    """A digest of the sources of imported ``packages``, of ``libraries``, Python, the processor and the threads of now."""
    program = _program(packages, libraries)
    return cache_key(program, str(core_count()), str(options.thread_count()), options.processor_level())


@cache
def _program(packages: tuple[str, ...], libraries: tuple[str, ...]) -> str:
    """A digest of what stays as it is while the process runs."""
    here = processor()
    return cache_key(
        *_sources(packages), *map(_version, libraries), sys.version,
        here.architecture, *here.identity, *sorted(here.flags),
    )  # fmt: skip


def _sources(packages: tuple[str, ...]) -> Iterator[str]:
    """Name, size and time of each source file: a version does not tell when somebody works on it."""
    for package in packages:
        yield from sorted(_stamps(os.path.dirname(str(sys.modules[package].__file__))))


def _stamps(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield _stamp(entry.path, entry.stat())
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _stamps(entry.path)


def _version(library: str) -> str:
    """What tells one installation of a library from another, without importing it."""
    spec = find_spec(library)
    return f"no {library}" if spec is None or spec.origin is None else _stamp(spec.origin, os.stat(spec.origin))


def _stamp(path: str, found: os.stat_result) -> str:
    return f"{path} {found.st_size} {found.st_mtime_ns}"
