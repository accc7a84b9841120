"""The only reader of the environment in this package."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from kernelgen.system import cores
from kernelgen.system.notices import warn_once

if TYPE_CHECKING:
    from kernelgen.system.shared_cache import SharedCache

LEAST_SECRET = 16
"""Characters; what signs code must not be guessed."""


def cache_dir() -> str | None:
    """Where compiled kernels are kept: ``GRAPHKERNEL_CACHE_DIR``, else the user's cache directory; None without a home."""
    given = os.environ.get("GRAPHKERNEL_CACHE_DIR")
    if given:
        return given
    import platformdirs  # only where the variable does not say it

    try:
        found = platformdirs.user_cache_dir("graphkernel")
    except RuntimeError:  # no HOME, and no entry of this user that names one: containers with arbitrary users
        return None
    return found if os.path.isabs(found) else None


def shared_cache_url() -> str:
    """``GRAPHKERNEL_SHARED_CACHE``: a URL of fsspec's; empty where it is not set."""
    return os.environ.get("GRAPHKERNEL_SHARED_CACHE", "")


def shared_cache() -> SharedCache | None:
    """The cache of many machines at :func:`shared_cache_url`, where ``GRAPHKERNEL_SHARED_CACHE_KEY`` is long enough."""
    url = shared_cache_url()
    return _shared(url, os.environ.get("GRAPHKERNEL_SHARED_CACHE_KEY", "")) if url else None


@cache
def _shared(url: str, secret: str) -> SharedCache | None:
    from kernelgen.system.shared_cache import SharedCache  # most machines have no such cache

    if len(secret) >= LEAST_SECRET:
        return SharedCache(url, secret.encode())
    warn_once(
        f"the shared cache {url} is not used: GRAPHKERNEL_SHARED_CACHE_KEY needs {LEAST_SECRET} characters or more"
    )
    return None


ISOLATE = "GRAPHKERNEL_ISOLATE_COMPILER"


def isolates_compiler() -> bool:
    """``GRAPHKERNEL_ISOLATE_COMPILER``: whether LLVM runs in a process of its own."""
    return os.environ.get(ISOLATE, "").lower() in ("on", "1", "true")


def isolate_compiler() -> None:
    """Sets it for this process; what the user gave stays."""
    os.environ.setdefault(ISOLATE, "on")


def processor_level() -> str:
    """``GRAPHKERNEL_CPU``: the level of processors that kernels are made for; empty for the very one that is there."""
    return os.environ.get("GRAPHKERNEL_CPU", "")


def thread_count() -> int:
    """How many threads a kernel may use: ``OMP_NUM_THREADS``, at most (and by default) the processors of this process."""
    return cores.thread_count(os.environ) or cores.core_count()


def asked_threads() -> int | None:
    """``OMP_NUM_THREADS``, at most the processors of this process; None where it is not set."""
    return cores.thread_count(os.environ)


def use_threads(count: int) -> None:
    """Sets ``OMP_NUM_THREADS`` for this process, also where somebody gave another value."""
    os.environ["OMP_NUM_THREADS"] = str(count)


def limit_threads(count: int) -> None:
    """Sets ``OMP_NUM_THREADS`` for libraries that this process loads later; a value that the user gave stays."""
    os.environ.setdefault("OMP_NUM_THREADS", str(count))
