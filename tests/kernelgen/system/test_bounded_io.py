"""What goes wrong at a door is one error of the caller's class; what is written appears whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelgen.system.bounded_io import json_value, read_text, write_whole, writing
from kernelgen.system.limits import LIMITS


class Wrong(Exception):
    """The caller's class."""


def test_a_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("größer", encoding="utf-8")
    assert read_text(tmp_path / "a", Wrong) == "größer"


@pytest.mark.parametrize(("name", "said"), [
    ("nothing", "No such file"), ("/dev/zero", "not a regular file"), (".", "Is a directory"), ("pipe", "not a regular"),
    ("a\0b", "null"), ("n" * 300, "too long"), ("\ud800", "surrogates"), ("binary", "not a text in UTF-8"),
    ("large", "larger than 20 bytes"),
])  # fmt: skip
def test_what_cannot_be_read_is_told(name: str, said: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_text("x" * 21)
    with pytest.raises(Wrong, match=said):
        read_text(os.path.join(tmp_path, name), Wrong, most_bytes=20)  # a Path would clean the name


@pytest.mark.parametrize(("text", "said"), [
    ("{", "not JSON"), ("[" * 100_000, "deeper"), ("[" * 500 + "]" * 500, "deeper"), ("1" * 5000, "digits"),
    ('["\\ud800"]', "half of a surrogate pair"), ('{"\\udfff": 1}', "half of a surrogate pair"),
    ('{"a":' * 70 + "1" + "}" * 70, "deeper"),
])  # fmt: skip
def test_json_that_is_too_much_is_told(text: str, said: str) -> None:
    with pytest.raises(Wrong, match=said):
        json_value(text, Wrong)


def test_json_within_the_bounds_is_read() -> None:
    depth = LIMITS.nesting - 1
    assert json_value("[" * depth + "]" * depth, Wrong)[0] is not None
    assert json_value('{"a": ["\\ud83d\\ude00", 1, null]}', Wrong) == {"a": ["😀", 1, None]}


@pytest.mark.parametrize(
    "name", ["", ".", "folder", "pipe", "no/such/folder/x", "a\0b", "n" * 300, "/proc/x", "/dev/null"]
)
def test_what_cannot_be_written_is_told_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(Wrong, match="cannot be written"):
        write_whole(tmp_path / name if name else "", "text", Wrong)
    assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_leaves_what_was_there() -> None:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        pytest.skip("there is no file system in memory here")
    file = folder / f"graphkernel_test_{os.getpid()}"
    file.write_text("before")
    space = os.statvfs(folder)
    try:
        with pytest.raises(Wrong, match=r"No space left|cannot be written"), writing(file, Wrong) as stream:
            os.posix_fallocate(stream.fileno(), 0, 2 * space.f_frsize * space.f_blocks)
        assert file.read_text() == "before"
        assert [path for path in folder.glob("*.part") if path.stat().st_size] == []
    finally:
        file.unlink()


def test_folders_are_made_where_they_are_wanted(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b" / "c", "text \ud800", Wrong, folders=True)
    assert (tmp_path / "a" / "b" / "c").read_text() == "text \\ud800"
