"""The files of compiled kernels on disk: which there are, whether they are whole, and which may go.

kernelgen writes one file for each compiled object, below a folder for each target. It takes a file that does not fit its
name and hash for missing and writes it anew, so that any file may be removed at any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kernelgen.options import cache_dir
from kernelgen.system.object_cache import ENTRIES, UNFINISHED_ENTRIES, read_entry, why_unusable

__all__ = ["CachedKernel", "cache_folder", "cached_kernels", "owner_of", "too_many", "unfinished", "why_unusable"]


def cache_folder() -> Path | None:
    """The folder of the cache, see :func:`kernelgen.options.cache_dir`; None where there is none."""
    folder = cache_dir()
    return None if folder is None else Path(folder)


@dataclass(frozen=True)
class CachedKernel:
    """One file: the target that it was compiled for, its size, and when it was written (seconds since 1970)."""

    path: Path
    target: str
    size: int
    written: float

    @property
    def is_whole(self) -> bool:
        """Whether it would be used: its content fits its name and hash, and it is the user's own."""
        return read_entry(self.path.parents[2], self.target, self.path.stem) is not None


def owner_of(folder: Path | None) -> str:
    """The user whom the folder belongs to; empty where there is none."""
    try:
        return folder.owner() if folder else ""
    except FileNotFoundError:
        return ""
    except KeyError:  # a user without an entry, as in containers
        return str(folder.stat().st_uid) if folder else ""


def cached_kernels(folder: Path | None) -> tuple[CachedKernel, ...]:
    """The files of all targets, the oldest first; none without a folder."""
    return _described(folder, ENTRIES)


def too_many(kernels: Iterable[CachedKernel], most_bytes: int) -> tuple[CachedKernel, ...]:
    """The oldest files, so that without them the others have ``most_bytes`` at most; ``kernels`` are the oldest first."""
    given = tuple(kernels)
    left, found = sum(entry.size for entry in given), list[CachedKernel]()
    for entry in given:
        if left <= most_bytes:
            break
        found.append(entry)
        left -= entry.size
    return tuple(found)


def unfinished(folder: Path | None) -> tuple[CachedKernel, ...]:
    """What processes are writing, or left when they were stopped while they wrote; the oldest first."""
    return _described(folder, UNFINISHED_ENTRIES)


def _described(folder: Path | None, pattern: str) -> tuple[CachedKernel, ...]:
    found: list[CachedKernel] = []
    for path in folder.glob(pattern) if folder else ():
        with suppress(FileNotFoundError):  # another process has just removed it
            seen = path.lstat()
            found.append(CachedKernel(path, path.parents[1].name, seen.st_size, seen.st_mtime))
    return tuple(sorted(found, key=lambda entry: (entry.written, entry.path)))
