"""What is measured on, and how fast it moves memory: a copy past the cache and a read, in LLVM IR of our own.

The limit of a case is the time that the machine takes to move the same bytes and compute nothing.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

from kernelgen.targets.cpu.runtime.llvm import Library, compile_object, detect_host, link

Stream = Callable[[int, int, int], None]
LANES = 8
STREAMS = 4
ELEMENTS = LANES * STREAMS
DISTRIBUTIONS = ("graphkernel", "numpy", "llvmlite", "islpy", "torch")


def describe() -> dict[str, object]:
    """Processor, kernel, Python and the versions of what is compared."""
    return {
        "processor": _processor(),
        "architecture": detect_host().cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version for name in DISTRIBUTIONS if (version := _version(name))},
    }


def aligned(size: int) -> np.ndarray:
    """Float32 elements that start on a page, all in memory: pages that were never written are one page of zeros."""
    page = 4096
    raw = np.ones(size * 4 + page, np.uint8)
    start = -raw.ctypes.data % page
    return raw[start : start + size * 4].view(np.float32)


class Copy:
    """Copies half of the given bytes with non-temporal stores: as many bytes move as a case must move."""

    def __init__(self, bytes_moved: int) -> None:
        self.source, self.target = (aligned(_whole(bytes_moved // 8)) for _ in range(2))

    def __call__(self) -> None:
        """Runs the copy."""
        _functions()[0](self.target.ctypes.data, self.source.ctypes.data, self.source.size)


class Read:
    """Adds up the given bytes in four streams: the limit where next to nothing is written."""

    def __init__(self, bytes_moved: int) -> None:
        self.source, self.total = aligned(_whole(bytes_moved // 4)), aligned(ELEMENTS)

    def __call__(self) -> None:
        """Runs the read."""
        _functions()[1](self.total.ctypes.data, self.source.ctypes.data, self.source.size)


def _whole(elements: int) -> int:
    return max(ELEMENTS, elements // ELEMENTS * ELEMENTS)


@cache
def _functions() -> tuple[Stream, Stream]:
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    library = _library()
    return prototype(library.addresses["copy"]), prototype(library.addresses["read"])


@cache
def _library() -> Library:
    """Kept for good: the code goes when the library does."""
    return link(compile_object(_source(), detect_host()), ("copy", "read"), {})


def _source() -> str:
    vector = f"<{LANES} x float>"
    load = [f"  %v{k} = load {vector}, ptr %p{k}, align 4" for k in range(STREAMS)]
    store = [f"  store {vector} %v{k}, ptr %q{k}, align 32, !nontemporal !0" for k in range(STREAMS)]
    sums = [f"  %s{k} = phi {vector} [ zeroinitializer, %entry ], [ %n{k}, %loop ]" for k in range(STREAMS)]
    add = [f"  %n{k} = fadd {vector} %s{k}, %v{k}" for k in range(STREAMS)]
    keep = [f"  %o{k} = getelementptr float, ptr %target, i64 {k * LANES}" for k in range(STREAMS)]
    keep += [f"  store {vector} %n{k}, ptr %o{k}, align 32" for k in range(STREAMS)]
    copy = _loop("copy", [], [*_addresses("p", "source"), *load, *_addresses("q", "target"), *store], [])
    return "\n".join([copy, _loop("read", sums, [*_addresses("p", "source"), *load, *add], keep), "!0 = !{i32 1}"])


def _addresses(name: str, base: str) -> list[str]:
    lines = [f"  %{name}i{k} = add i64 %i, {k * LANES}" for k in range(STREAMS)]
    return lines + [f"  %{name}{k} = getelementptr float, ptr %{base}, i64 %{name}i{k}" for k in range(STREAMS)]


def _loop(name: str, carried: list[str], body: list[str], end: list[str]) -> str:
    lines = [
        f"define void @{name}(ptr %target, ptr %source, i64 %size) {{",
        "entry:\n  br label %loop",
        "loop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *carried,
        *body,
        f"  %next = add i64 %i, {ELEMENTS}",
        "  %more = icmp ult i64 %next, %size\n  br i1 %more, label %loop, label %end",
        "end:",
        *end,
        "  fence seq_cst\n  ret void\n}",
    ]
    return "\n".join(lines)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
