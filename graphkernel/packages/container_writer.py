"""The archive as it is written: entries one after the other, without times."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import BinaryIO

_ZIP64_FROM = 1 << 31  # bytes of an entry; where sizes are counted in 64 bits
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
