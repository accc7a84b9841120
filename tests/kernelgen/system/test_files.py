"""Files read within bounds, and written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kernelgen.system.files import MOST_PARTS, read_file, replacing, write_together


def test_content_up_to_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_file(path, 4)


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            read_file(path, 1 << 20)


def test_a_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"ne")
        assert path.read_bytes() == b"old"
        file.write(b"w")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def _fail(path: Path, failure: type[BaseException]) -> None:
    with replacing(path) as file:
        file.write(b"half")
        raise failure


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt, ValueError])
def test_what_fails_leaves_what_was_there(tmp_path: Path, failure: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(failure):
        _fail(path, failure)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_umask_counts(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "file") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("most", [1, 5, 1 << 20])
def test_parts_are_written_one_behind_the_other_however_many_a_call_takes(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [
        b"first",
        b"",
        np.arange(3, dtype=np.int32).data,
        *(bytes([n % 256]) for n in range(MOST_PARTS + 9)),
        b"",
    ]
    calls: list[int] = []

    def some(descriptor: int, given: Sequence[memoryview]) -> int:
        calls.append(len(given))
        return os.write(descriptor, b"".join(given)[:most])

    monkeypatch.setattr(os, "writev", some)
    with replacing(tmp_path / "file") as file:
        file.write(b"before")
        write_together(file, parts)
    assert (tmp_path / "file").read_bytes() == b"before" + b"".join(bytes(part) for part in parts)
    assert max(calls) <= MOST_PARTS
