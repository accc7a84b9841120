"""Compiled objects on disk, for their owner alone.

A file is the digest of its key and its content, then the content; it appears by atomic rename. One that is missing,
damaged or made for another key is a miss. Code from here is run, so nothing is read where others could have written
(:mod:`kernelgen.system.private_folder`). Without a folder everything is compiled again, and the user is told once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from mmap import mmap
from typing import TYPE_CHECKING, TypeVar

from kernelgen.system.digest import digest_of
from kernelgen.system.files import UNFINISHED, replacing, write_together
from kernelgen.system.limits import LIMITS
from kernelgen.system.notices import warn_once
from kernelgen.system.private_folder import FilePath, NotOursError, map_own, own_folder, read_own

if TYPE_CHECKING:
    from kernelgen.system.shared_cache import SharedCache

Used = TypeVar("Used")

WAIT_SECONDS = 60.0
"""For another process of this machine that makes the same entry."""
LOOK_SECONDS = 0.02

SUFFIX = ".o"
FORMAT = "3"
_HEX = "[0-9a-f]"
ENTRIES = f"*/{_HEX * 2}/{_HEX * 64}{SUFFIX}"
UNFINISHED_ENTRIES = f"*/{_HEX * 2}/{_HEX * 16}{UNFINISHED}"
"""Where files of the cache lie below its folder, as patterns that fit nothing else: what fits may be removed."""

CONTENT = 32
"""Where in its file the content of an entry begins, behind the digest."""

_NO_FOLDER = "there is no home folder; set GRAPHKERNEL_CACHE_DIR to a folder of your own"


def cache_key(*parts: str) -> str:
    """The name of an entry: a hash of everything that its content depends on."""
    sized = (part for text in parts for part in (len(text).to_bytes(8, "little"), text.encode()))
    return digest_of(FORMAT.encode(), *sized).hex()


def cached(
    folder: FilePath | None,
    room: str,
    key: str,
    produce: Callable[[], bytes],
    use: Callable[[bytes], Used],
    shared: SharedCache | None = None,
) -> tuple[Used, bool]:
    """What ``use`` makes of the content under that key in a room of the cache, and whether it came from disk.

    Where there is none, or none that ``use`` takes, ``produce`` makes it and it is stored. ``folder`` None: no cache.
    What this machine has not, a ``shared`` cache may have.
    """
    stored = None if folder is None else read_entry(folder, room, key, shared)
    if stored is not None:
        with suppress(Exception):  # whatever is wrong with what is kept: it can be made again
            return use(stored), True
    content = produce()
    write_entry(folder, room, key, content, shared=shared)
    return use(content), False


def read_entry(folder: FilePath, room: str, key: str, shared: SharedCache | None = None) -> bytes | None:
    """The content under a key; None when it is missing, damaged, made for another key, or not the user's own.

    Args:
        folder: the cache.
        room: the part of the cache that the entry belongs to.
        key: what the content was made from, as a digest.
        shared: where to look for what is missing; what is found there is kept here.
    """
    found = _read(folder, room, key)
    if found is None and shared is not None:
        found = shared.read(room, key)
        if found is not None:
            write_entry(folder, room, key, found)
    return found


def _read(folder: FilePath, room: str, key: str) -> bytes | None:
    try:
        with own_folder(folder, room, key[:2]) as inside:
            stored = read_own(entry_path(folder, room, key), LIMITS.object_bytes, inside)
    except NotOursError as error:
        warn_once(f"not used as cache of compiled kernels: {error}; GRAPHKERNEL_CACHE_DIR may name another folder")
        return None
    except OSError:
        return None
    content = memoryview(stored)[CONTENT:]
    return bytes(content) if stored[:CONTENT] == digest_of(key.encode(), content) else None


def map_entry(folder: FilePath, room: str, key: str) -> mmap | None:
    """The file of an entry as mapped memory, None where it is missing or not the user's own.

    Nobody has held it against its digest: it is for data that the caller knows another digest of, and never for code.
    """
    with suppress(OSError, ValueError), own_folder(folder, room, key[:2]) as inside:  # ValueError: an empty file
        return map_own(entry_path(folder, room, key), inside)
    return None


def entry_path(folder: FilePath, room: str, key: str) -> str:
    """The file of the entry with a ``key`` in a ``room`` of the cache ``folder``."""
    return os.path.join(folder, room, key[:2], f"{key}{SUFFIX}")


def why_unusable(folder: FilePath | None) -> str:
    """Why compiled kernels are not kept; empty where they are. Makes the folder where it is missing."""
    if folder is None:
        return _NO_FOLDER
    try:
        with own_folder(folder, make=True):
            return "" if os.access(folder, os.W_OK) else "it cannot be written"
    except OSError as error:
        return str(error)


def write_entry(
    folder: FilePath | None, room: str, key: str, *content: bytes | memoryview, shared: SharedCache | None = None
) -> None:
    """Keeps parts of ``content``, one behind the other, under a ``key`` in a ``room`` of ``folder`` and of a ``shared`` cache.

    This is so where it is possible: without it everything is only compiled again. A folder may be full, or cannot be
    written. Nor is kept what :func:`read_entry` would find too large.
    """
    is_small = CONTENT + sum(map(len, content)) <= LIMITS.object_bytes
    if is_small and shared is not None:
        shared.write(room, key, b"".join(content))
    if folder is None:
        warn_once(f"compiled kernels are not kept: {_NO_FOLDER}")
    if not is_small or folder is None:
        return
    with (
        suppress(OSError),
        own_folder(folder, room, key[:2], make=True) as inside,
        replacing(f"{key}{SUFFIX}", 0o600, inside) as file,
    ):
        write_together(file, (digest_of(key.encode(), *content), *content))


@contextmanager
def leading(folder: FilePath | None, room: str, key: str, shared: SharedCache | None = None) -> Generator[None]:
    """Of all processes that want the entry ``key`` in a ``room``, one at a time is in the block: on this machine by a lock
    in ``folder``, which goes with its process, and among the machines of a ``shared`` cache by a lease.

    So the first makes the entry and the others find it. Nobody waits longer than a minute: making it twice does no harm.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            if folder is not None:
                inside = stack.enter_context(own_folder(folder, room, key[:2], make=True))
                stack.enter_context(_locked(inside))
        if shared is not None and (folder is None or _read(folder, room, key) is None):
            stack.enter_context(shared.leading(room, key))
        yield


@contextmanager
def _locked(folder: int) -> Generator[None]:
    """Holds the lock of an open folder, or gives up waiting for it."""
    import fcntl  # only who compiles

    file = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    end = time.monotonic() + WAIT_SECONDS
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > end:
                break
            time.sleep(LOOK_SECONDS)
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)  # closing alone would leave it to children that were forked meanwhile
        os.close(file)
