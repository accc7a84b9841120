"""The archive: entries in the order in which they are written, read from memory that the file is mapped into."""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

from graphkernel.errors import PackageError
from graphkernel.limits import LIMITS

_ZIP64_FROM = 1 << 31  # bytes of an entry; where sizes are counted in 64 bits
_LOCAL_HEADER = struct.Struct("<4s5HIII2H")
_NO_TIME = (1980, 1, 1, 0, 0, 0)


class PackageWriter:
    """Entries of a new archive."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    @contextmanager
    def entry(self, name: str, size: int) -> Generator[tuple[Callable[[bytes | memoryview], object], int]]:
        """A function that writes, and where in the file its first byte lies. ``size`` is at least what will be written."""
        information = zipfile.ZipInfo(name, _NO_TIME)
        information.create_system, information.external_attr = 3, 0o644 << 16
        with self._zip.open(information, "w", force_zip64=size >= _ZIP64_FROM) as stream:
            assert self._zip.fp is not None, "an archive that is being written is open"
            yield stream.write, self._zip.fp.tell()

    def write(self, name: str, content: bytes) -> None:
        """A small entry."""
        with self.entry(name, len(content)) as (write, _):
            write(content)

    def close(self) -> None:
        """Writes the table of entries."""
        self._zip.close()


class PackageReader:
    """The entries of an archive as views of its bytes; ``path`` is what errors call it.

    Raises PackageError for what is none of ours.
    """

    def __init__(self, path: str, content: Callable[[], bytes | mmap.mmap]) -> None:
        self.path = path
        try:
            self._memory = memoryview(content())
            self._entries = _places(self._memory)
        except (OSError, ValueError, struct.error, zipfile.BadZipFile, NotImplementedError) as error:
            raise PackageError(f"{path}: no package that can be read: {error}") from error

    @staticmethod
    def mapped(path: str | os.PathLike[str]) -> PackageReader:
        """Of a file, which is mapped."""
        return PackageReader(os.fspath(path), lambda: _mapped(path))

    @property
    def names(self) -> tuple[str, ...]:
        """All entries in order."""
        return tuple(self._entries)

    def view(self, name: str) -> memoryview:
        """The bytes of an entry; whoever keeps a part of them keeps the file mapped."""
        if name not in self._entries:
            raise PackageError(f"{self.path}: a package without {name}")
        start, size, _ = self._entries[name]
        return self._memory[start : start + size]

    def content(self, name: str, digest: str, most_bytes: int = LIMITS.text_bytes) -> bytes:
        """A small entry, held against its digest."""
        view = self.view(name)
        if len(view) > most_bytes:
            raise PackageError(f"{self.path}: {name} has {len(view)} bytes; at most {most_bytes} are read")
        if hashlib.sha256(view).hexdigest() != digest:
            raise PackageError(f"{self.path}: {name} is damaged: it does not fit its digest; build the package again")
        return bytes(view)

    def check_sum(self, name: str) -> None:
        """Reads a large entry and raises PackageError when it is damaged."""
        if zlib.crc32(self.view(name)) != self._entries[name][2]:
            raise PackageError(f"{self.path}: {name} is damaged: it does not fit its checksum; build the package again")


def _mapped(path: str | os.PathLike[str]) -> mmap.mmap:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Bytes(io.RawIOBase):
    """Memory as a file, without a copy."""

    def __init__(self, memory: memoryview) -> None:
        self._memory, self._at = memory, 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = (0, self._at, len(self._memory))[whence]
        self._at = start + offset
        if self._at < 0:
            raise OSError("before the beginning")
        return self._at

    def read(self, size: int = -1) -> bytes:
        found = bytes(self._memory[self._at :] if size < 0 else self._memory[self._at : self._at + size])
        self._at += len(found)
        return found


def _places(memory: memoryview) -> Mapping[str, tuple[int, int, int]]:
    """Of each entry where it starts, its size and its checksum."""
    with zipfile.ZipFile(_Bytes(memory)) as archive:
        listed = archive.infolist()
    if len({entry.filename for entry in listed}) < len(listed):
        raise ValueError("two entries of one name")
    return {entry.filename: _place(memory, entry) for entry in listed}


def _place(memory: memoryview, entry: zipfile.ZipInfo) -> tuple[int, int, int]:
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise ValueError(f"{entry.filename} is packed or encrypted")
    header = _LOCAL_HEADER.unpack_from(memory, entry.header_offset)
    start = entry.header_offset + _LOCAL_HEADER.size + header[-2] + header[-1]
    if header[0] != b"PK\3\4" or start + entry.file_size > len(memory):
        raise ValueError(f"{entry.filename} lies beyond the end")
    return start, entry.file_size, entry.CRC
