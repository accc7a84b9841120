"""Files read within bounds, and files written whole or not at all: for every door of both packages."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

UNFINISHED = ".part"
"""The suffix of a file that is being written; one that is old was left by a process that was stopped."""

MOST_PARTS = 1024
"""That Linux takes in one call (IOV_MAX)."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe must not wait for its writer


def read_file(path: str | Path, most_bytes: int) -> bytes:
    """The content of a regular file of at most ``most_bytes``; links are followed.

    Raises OSError, also for a device, a pipe, a folder (EINVAL) and for a file that is larger (EFBIG).
    """
    with os.fdopen(os.open(path, _READ), "rb") as file:
        return read_open(file, path, most_bytes)


def open_file(path: str | Path, most_bytes: int) -> BufferedReader:
    """A regular file of at most ``most_bytes``, open for reading. Raises OSError as :func:`read_file` does."""
    file = os.fdopen(os.open(path, _READ), "rb")
    try:
        if _checked(file, path).st_size > most_bytes:
            raise OSError(errno.EFBIG, f"larger than {most_bytes} bytes", str(path))
    except OSError:
        file.close()
        raise
    return file


def read_open(file: BinaryIO, path: str | Path, most_bytes: int) -> bytes:
    """The content of an open file; as :func:`read_file`. ``path`` is what errors call it.

    Raises OSError for a file that is larger than ``most_bytes``.
    """
    found = _checked(file, path)
    content = file.read(min(found.st_size, most_bytes) + 1)
    while len(content) <= most_bytes and (
        more := file.read(1 << 16)
    ):  # files of /proc have no size, and others may grow
        content += more
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes} bytes", str(path))
    return content


def _checked(file: BinaryIO, path: str | Path) -> os.stat_result:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return found


@contextmanager
def replacing(path: str | Path, mode: int = 0o666, folder: int | None = None) -> Generator[BinaryIO]:
    """A new file that takes the place of ``path`` when the block ends well; else it goes, and what was there stays.

    Whoever reads finds the old content or all of the new one, whenever this process ends. The umask is taken from
    ``mode``. ``folder`` is an open folder that ``path`` is relative to. Raises OSError.
    """
    target = os.fspath(path)
    unfinished = os.path.join(os.path.dirname(target), f"{os.urandom(8).hex()}{UNFINISHED}")
    created = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
    try:
        with os.fdopen(created, "wb") as file:
            yield file
        os.replace(unfinished, target, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise


def write_together(file: BinaryIO, parts: Sequence[bytes | memoryview]) -> None:
    """Writes ``parts``, one behind the other, to the end of an open ``file`` by as few calls as the system takes.

    Linux keeps what a call writes in pieces as large as the call is long, of up to 2 MB where they begin at such a multiple.
    A file that is mapped then has large pages: 27 arrays of 2.3 MB had 6 of 60 MB in them when each was written alone,
    now all. Raises OSError.
    """
    file.flush()
    waiting = deque(memoryview(part).cast("B") for part in parts if memoryview(part).nbytes)  # nothing has no such view
    while waiting:
        done = os.writev(file.fileno(), list(islice(waiting, MOST_PARTS)))
        while waiting and done >= len(waiting[0]):
            done -= len(waiting.popleft())
        if done:
            waiting[0] = waiting[0][done:]
