"""The reader of archives: what the standard library writes, also beyond 32 bits, and nothing that is packed or cut."""

from __future__ import annotations

import struct
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from graphkernel.errors import PackageError
from graphkernel.packages import container
from graphkernel.packages.container import PackageReader
from graphkernel.packages.container_writer import PackageWriter

CONTENTS = {"first": b"", "folder/second": b"\x00\x01" * 40, "third.json": b"{}"}


def archive(contents: dict[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as file:
        for name, content in contents.items():
            file.writestr(name, content)
    return stream.getvalue()


def read(content: bytes) -> PackageReader:
    return PackageReader("package", lambda: content)


def held(reader: PackageReader) -> dict[str, bytes]:
    for name in reader.names:
        reader.check_sum(name)
    return {name: bytes(reader.view(name)) for name in reader.names}


def test_what_the_writer_wrote_is_read(tmp_path: Path) -> None:
    with (tmp_path / "package").open("wb") as file:
        writer = PackageWriter(file)
        for name, content in CONTENTS.items():
            writer.write(name, content)
        writer.close()
    assert held(PackageReader.mapped(tmp_path / "package")) == CONTENTS


@pytest.mark.parametrize("piece", [1, 7, 80, 1000])
def test_an_entry_is_looked_at_in_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "PIECE", piece)
    content = archive(CONTENTS)
    assert held(read(content)) == CONTENTS
    with pytest.raises(PackageError, match="folder/second is damaged"):
        held(read(content.replace(b"\0\1" * 40, b"\0\1" * 39 + b"\0\2")))


@pytest.mark.parametrize("limit", [-1, 50, 100, 200])
def test_sizes_and_places_in_64_bits(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library writes them beyond a limit, which is lowered here."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", limit)
    monkeypatch.setattr(zipfile.ZipInfo, "FileHeader", lambda *_, header=zipfile.ZipInfo.FileHeader: header(_[0], True))
    content = archive(CONTENTS)
    assert held(read(content)) == CONTENTS
    assert b"PK\6\6" in content
    end = struct.pack("<2LH", 0xFFFFFFFF, 0xFFFFFFFF, 0)  # size and place of the table, as beyond four gigabytes
    assert held(read(content[: -len(end)] + end)) == CONTENTS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no package that can be read"),
        (b"PK", "no package that can be read"),
        (archive(CONTENTS)[:-1], "no archive, or one that was cut off"),
        (archive(CONTENTS)[8:], "beyond the end|packed"),
        (archive(CONTENTS, zipfile.ZIP_DEFLATED), "packed or encrypted"),
        (archive({"\u00fc": b""}), "no package that can be read"),
    ],
)
def test_what_is_no_archive_of_ours_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(PackageError, match=message):
        read(content)


def test_two_entries_of_one_name_are_refused() -> None:
    content = archive({"one": b"1", "two": b"2"}).replace(b"two", b"one")
    with pytest.raises(PackageError, match="two entries of one name"):
        read(content)


def test_any_bytes_are_read_or_refused() -> None:
    sound, random = archive(CONTENTS), np.random.default_rng(0)
    for _ in range(2000):
        damaged = bytearray(sound)
        for place in random.integers(len(sound), size=int(random.integers(1, 4))):
            damaged[place] = int(random.integers(256))
        try:
            held(read(bytes(damaged)))
        except PackageError:
            continue
