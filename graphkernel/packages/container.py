"""The archive as it is read: views of memory that the file is mapped into.

Only what ``container_writer`` writes is read, entries that are stored as they are: a few headers of the zip format. The
standard library's reader of all the others takes longer to import than everything else that happens to a package.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping

from graphkernel.errors import PackageError
from kernelgen.system.digest import digest
from kernelgen.system.limits import LIMITS

REGIONS = "regions/"
"""How the names of those entries begin that onnxruntime runs."""

PIECE = 1 << 25
"""Bytes of an entry that are looked at at once."""

_END = struct.Struct("<4s4H2LH")  # behind everything: numbers of the disk, entries, size and place of their table
_LOCATOR = struct.Struct("<4sLQL")  # before that, in a large archive: where its end in 64 bits lies
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s4B4H3L5H2L")  # in the table
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")  # before the bytes of an entry
_EXTRA = struct.Struct("<2H")
_IN_64_BITS = 0xFFFFFFFF  # a size or a place that stands among the extra fields
_SIZES_IN_64_BITS = 1  # the extra field of these
_ENCRYPTED, _STORED = 1, 0

Place = tuple[int, int, int]
"""Of an entry: where it starts, its size and its checksum."""


class PackageReader:
    """The entries of an archive as views of its bytes; ``path`` is what errors call it.

    Raises PackageError for what is none of ours.
    """

    def __init__(self, path: str, content: Callable[[], bytes | mmap.mmap]) -> None:
        self.path = path
        try:
            self._memory = memoryview(content())
            self._entries = _places(self._memory)
        except (OSError, ValueError, struct.error) as error:
            raise PackageError(f"{path}: no package that can be read: {error}") from error

    @staticmethod
    def mapped(path: str | os.PathLike[str]) -> PackageReader:
        """Of a file, which is mapped."""
        return PackageReader(os.fspath(path), lambda: _mapped(path))

    @property
    def is_mapped(self) -> bool:
        """Whether its bytes lie in a file, whose pages come and go; else they are all in memory."""
        return isinstance(self._memory.obj, mmap.mmap)

    @property
    def names(self) -> tuple[str, ...]:
        """All entries in order."""
        return tuple(self._entries)

    def view(self, name: str) -> memoryview:
        """The bytes of an entry; whoever keeps a part of them keeps the file mapped.

        Raises PackageError where the package lacks it.
        """
        if name not in self._entries:
            raise PackageError(f"{self.path}: a package without {name}")
        start, size, _ = self._entries[name]
        return self._memory[start : start + size]

    def sound(self, name: str, digests: Mapping[str, str]) -> memoryview:
        """An entry that is held against its digest. Raises PackageError where it is damaged."""
        view = self.view(name)
        if digest(view) != digests.get(name):
            raise PackageError(f"{self.path}: {name} is damaged: it does not fit its digest; build the package again")
        return view

    def content(self, name: str, digests: Mapping[str, str], most_bytes: int = LIMITS.text_bytes) -> bytes:
        """A small entry, held against its digest. Raises PackageError where it is too large or damaged."""
        view = self.view(name)
        if len(view) > most_bytes:
            raise PackageError(f"{self.path}: {name} has {len(view)} bytes; at most {most_bytes} are read")
        return bytes(self.sound(name, digests))

    def check_sum(self, name: str) -> None:
        """Reads a large entry, of which no more than a piece stays in memory; raises PackageError when it is damaged."""
        content, found = self.view(name), 0
        for start in range(0, len(content), PIECE):
            piece = content[start : start + PIECE]
            found = zlib.crc32(piece, found)
            if len(content) > PIECE:
                _let_go(piece)
        if found != self._entries[name][2]:
            raise PackageError(f"{self.path}: {name} is damaged: it does not fit its checksum; build the package again")


def _let_go(piece: memoryview) -> None:
    """Takes what was looked at out of memory again."""
    import numpy as np  # few packages are so large, and what else needs it loads while others do

    from kernelgen.system.mapped import let_go

    let_go(np.frombuffer(piece, np.uint8))


def _mapped(path: str | os.PathLike[str]) -> mmap.mmap:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _places(memory: memoryview) -> Mapping[str, Place]:
    """The entries in order. Raises ValueError for what is no archive of stored entries."""
    found: dict[str, Place] = {}
    count, size, start = _table(memory)
    for name, place in _entries(memory[start : start + size]):
        if name in found:
            raise ValueError("two entries of one name")
        found[name] = _place(memory, name, *place)
    if len(found) != count:
        raise ValueError("a table of other entries than its end says")
    return found


def _table(memory: memoryview) -> tuple[int, int, int]:
    """How many entries the table has, its size and where it starts."""
    end = len(memory) - _END.size
    mark, _, _, _, count, size, start, comment = _END.unpack_from(memory, max(end, 0))
    if end < 0 or mark != b"PK\5\6" or comment:
        raise ValueError("no archive, or one that was cut off")
    if _IN_64_BITS in (size, start) and end >= _LOCATOR.size:
        mark, _, place, _ = _LOCATOR.unpack_from(memory, end - _LOCATOR.size)
        mark64, *_, count, size, start = _END64.unpack_from(memory, place)
        if (mark, mark64) != (b"PK\6\7", b"PK\6\6"):
            raise ValueError("no end in 64 bits where it should be")
    return count, size, start


def _entries(table: memoryview) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """The name of each entry, and where its header is, its size and its checksum."""
    at = 0
    while at < len(table):
        mark, *_, flags, packing, _, _, check, _, size, name, extra, comment, _, _, _, header = _ENTRY.unpack_from(
            table, at
        )
        names, extras = at + _ENTRY.size, at + _ENTRY.size + name
        called = bytes(table[names:extras]).decode("ascii")
        if mark != b"PK\1\2" or packing != _STORED or flags & _ENCRYPTED:
            raise ValueError(f"{called} is packed or encrypted")
        if _IN_64_BITS in (size, header):
            size, header = _wide(table[extras : extras + extra], size, header)
        yield called, (header, size, check)
        at = extras + extra + comment


def _wide(extras: memoryview, size: int, header: int) -> tuple[int, int]:
    """Size and place of an entry, of which those that need 64 bits stand among the extra fields, one after the other."""
    kind, length = _EXTRA.unpack_from(extras)
    if kind != _SIZES_IN_64_BITS or length % 8:
        raise ValueError("sizes in 64 bits that are missing")
    told = iter(struct.unpack_from(f"<{length // 8}Q", extras, _EXTRA.size))
    if size == _IN_64_BITS:
        size, _ = next(told, 0), next(told, 0)  # the second is the size when packed, the same
    return size, next(told, 0) if header == _IN_64_BITS else header


def _place(memory: memoryview, name: str, header: int, size: int, check: int) -> Place:
    mark, *_, name_size, extra_size = _LOCAL_HEADER.unpack_from(memory, header)
    start = header + _LOCAL_HEADER.size + name_size + extra_size
    if mark != b"PK\3\4" or start + size > len(memory):
        raise ValueError(f"{name} lies beyond the end")
    return start, size, check
