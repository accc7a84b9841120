"""The files of compiled kernels on disk: which there are, whether they are whole, and which may go.

kernelgen writes one file for each compiled object, below a folder for each target: the sha256 of the content, then the
content. It takes a file that does not fit its hash for missing and writes it anew, so that any file may be removed at any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from graphkernel.options import Environment

SUFFIX = ".o"
UNFINISHED = ".part"
DIGEST_BYTES = 32


@dataclass(frozen=True)
class CachedKernel:
    """One file: the target that it was compiled for, its size, and when it was written (seconds since 1970)."""

    path: Path
    target: str
    size: int
    written: float

    @property
    def is_whole(self) -> bool:
        """Whether the content fits its hash; False as well when the file is gone or cannot be read."""
        try:
            stored = self.path.read_bytes()
        except OSError:
            return False
        return hashlib.sha256(stored[DIGEST_BYTES:]).digest() == stored[:DIGEST_BYTES]


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``GRAPHKERNEL_CACHE_DIR``, else the user's cache folder."""
    return Environment.read().cache_dir or Path(platformdirs.user_cache_dir("graphkernel"))


def cached_kernels(folder: Path) -> tuple[CachedKernel, ...]:
    """The files of all targets, the oldest first."""
    found = [_described(path, folder) for path in sorted(folder.glob(f"*/*/*{SUFFIX}"))]
    return tuple(sorted(found, key=lambda entry: entry.written))


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


def unfinished(folder: Path) -> tuple[Path, ...]:
    """What processes left that were stopped while they wrote."""
    return tuple(sorted(folder.glob(f"*/*/*{UNFINISHED}")))


def _described(path: Path, folder: Path) -> CachedKernel:
    seen = path.stat()
    return CachedKernel(path, path.relative_to(folder).parts[0], seen.st_size, seen.st_mtime)
