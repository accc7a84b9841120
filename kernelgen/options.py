"""The only reader of the environment in this package."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

LOG_LEVELS = ("debug", "info", "warning", "error")


def cache_dir() -> Path:
    """Where compiled kernels are kept: ``GRAPHKERNEL_CACHE_DIR``, else the user's cache directory."""
    return Path(os.environ.get("GRAPHKERNEL_CACHE_DIR") or platformdirs.user_cache_dir("graphkernel"))


def thread_count() -> int:
    """How many threads a kernel may use: ``OMP_NUM_THREADS``, else the cores that this process may run on."""
    written = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(written) if written.isdigit() and int(written) > 0 else core_count()


def core_count() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_threads(count: int) -> None:
    """Sets ``OMP_NUM_THREADS`` for libraries that this process loads later; a value that the user gave stays."""
    os.environ.setdefault("OMP_NUM_THREADS", str(count))


def log_level() -> str:
    """``GRAPHKERNEL_LOG``: debug, info, warning (the default) or error."""
    level = os.environ.get("GRAPHKERNEL_LOG", "").lower()
    return level if level in LOG_LEVELS else "warning"
