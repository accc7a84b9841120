"""Compiled objects on disk. A file is the sha256 of its content, then the content; it appears by atomic rename.

An entry that is missing, truncated or altered is a miss. A directory that cannot be written is no error: the next process
compiles again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

FORMAT = "1"
_DIGEST_BYTES = 32


def cache_key(*parts: str) -> str:
    """The name of an entry: a hash of everything that its content depends on."""
    joined = hashlib.sha256(FORMAT.encode())
    for part in parts:
        joined.update(len(part).to_bytes(8, "little"))
        joined.update(part.encode())
    return joined.hexdigest()


def cached(directory: Path, key: str, produce: Callable[[], bytes]) -> bytes:
    """The content under that key, produced and stored when there is none."""
    path = directory / key[:2] / f"{key}.o"
    content = read_entry(path)
    if content is None:
        content = produce()
        _write_entry(path, content)
    return content


def read_entry(path: Path) -> bytes | None:
    """The content of an entry, or None when it is missing or does not match its hash."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    digest, content = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


def _write_entry(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
