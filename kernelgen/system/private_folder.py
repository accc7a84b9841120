"""Folders and files that belong to this user, and that nobody else may write to: code may be kept there."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TypeAlias

from kernelgen.system.files import read_open

FilePath: TypeAlias = "str | os.PathLike[str]"
"""pathlib takes longer to import than all else that a model from the cache needs of Python."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OF_ANOTHER_KIND = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO)


class NotOursError(OSError):
    """Somebody else could have put this here, or it is a link, a device or a pipe: nothing is read from it."""


@contextmanager
def own_folder(folder: FilePath, *names: str, make: bool = False) -> Generator[int]:
    """An open folder some steps below ``folder``, for as long as the block takes; ``make`` makes those that are missing.

    Raises NotOursError where a step is not the user's own, FileNotFoundError and other OSErrors as they come.
    """
    if make:
        _make(folder)
    inner = _opened(folder, _FOLDER)
    try:
        for name in names:
            folder = os.path.join(folder, name)
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=inner)
            outer, inner = inner, _opened(folder, _FOLDER, inner)
            os.close(outer)
        yield inner
    finally:
        os.close(inner)


def read_own(path: str, most_bytes: int, folder: int) -> bytes:
    """The content of a file of an open folder. Raises NotOursError, and what :func:`kernelgen.system.files.read_file` does."""
    with os.fdopen(_opened(path, _FILE, folder), "rb") as file:
        return read_open(file, path, most_bytes)


def map_own(path: str, folder: int) -> mmap.mmap:
    """A file of an open folder as read-only memory. Raises NotOursError, other OSErrors, and ValueError for an empty file."""
    with os.fdopen(_opened(path, _FILE, folder), "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _opened(path: FilePath, flags: int, folder: int | None = None) -> int:
    """A descriptor; ``path`` is what errors name, of which only the last part counts in an open folder."""
    try:
        descriptor = os.open(path if folder is None else os.path.basename(path), flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _OF_ANOTHER_KIND:
            raise NotOursError(f"{path} is a link or something else of another kind") from None
        raise
    complaint = _complaint(os.fstat(descriptor), stat.S_IFDIR if flags == _FOLDER else stat.S_IFREG)
    if complaint:
        os.close(descriptor)
        raise NotOursError(f"{path} {complaint}")
    return descriptor


def _complaint(found: os.stat_result, kind: int) -> str:
    if stat.S_IFMT(found.st_mode) != kind:
        return "is a device, a pipe or something else of another kind"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}"
    return "can be written by other users (chmod go-w)" if found.st_mode & _OTHERS_WRITE else ""


def _make(folder: FilePath) -> None:
    """The folder and what is missing above it, for this user alone whatever the umask is."""
    if not os.path.exists(folder):
        _make(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
