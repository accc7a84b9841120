"""The cache of compiled objects: what comes back, what never does, and what becomes of folders and files of others."""

from __future__ import annotations

import logging
import os
import stat
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgen import options
from kernelgen.system import notices, object_cache
from kernelgen.system.limits import LIMITS
from kernelgen.system.object_cache import cache_key, cached, read_entry, why_unusable, write_entry

ROOM = "cpu"
KEY, OTHER = cache_key("a"), cache_key("b")
OLD, NEW = b"some content", b"new"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notices.warn_once.cache_clear()
    return tmp_path / "cache"


def entry_path(folder: Path, room: str, key: str) -> Path:
    """The file of an entry."""
    return Path(object_cache.entry_path(folder, room, key))


def kept(folder: str | Path | None, key: str = KEY, content: bytes = OLD) -> tuple[bytes, bool]:
    """The content under the key, made as ``content`` where there is none, and whether it was there."""
    return cached(folder, ROOM, key, lambda: content, bytes)


def test_what_was_made_comes_back(folder: Path) -> None:
    assert kept(folder) == (OLD, False)
    assert kept(folder, content=NEW) == (OLD, True)
    assert kept(folder, OTHER, NEW) == (NEW, False)
    assert [path.suffix for path in folder.rglob("*") if path.is_file()] == [".o", ".o"]


def test_what_is_too_large_to_be_read_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelgen.system.object_cache.LIMITS", LIMITS._replace(object_bytes=100))
    assert kept(folder, content=bytes(200)) == (bytes(200), False)
    assert not [path for path in folder.rglob("*") if path.is_file()]
    assert kept(folder, content=bytes(50)) == (bytes(50), False)
    assert kept(folder) == (bytes(50), True)


def test_a_large_entry_is_read_and_written_with_one_copy_at_most(folder: Path) -> None:
    content = bytes(1 << 24)
    tracemalloc.start()
    write_entry(folder, ROOM, KEY, content)
    written = tracemalloc.get_traced_memory()[1]
    assert read_entry(folder, ROOM, KEY) == content
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert written < len(content) // 4
    assert peak < 2.2 * len(content)


def test_keys_separate_their_parts() -> None:
    assert cache_key("ab", "c") != cache_key("a", "bc") != cache_key("abc")


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b[:40] + b"?" + b[41:], lambda b: b"", lambda b: b[:20], lambda b: b + b"?"]
)
def test_damaged_entries_are_made_again(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    kept(folder)
    path = entry_path(folder, ROOM, KEY)
    path.write_bytes(damage(path.read_bytes()))
    assert read_entry(folder, ROOM, KEY) is None
    assert kept(folder, content=NEW) == (NEW, False)
    assert kept(folder) == (NEW, True)


def test_an_entry_under_another_name_is_a_miss(folder: Path) -> None:
    kept(folder)
    theirs = entry_path(folder, ROOM, OTHER)
    theirs.parent.mkdir(mode=0o700, exist_ok=True)
    theirs.write_bytes(entry_path(folder, ROOM, KEY).read_bytes())
    assert kept(folder, OTHER, NEW) == (NEW, False)


def test_content_that_cannot_be_used_is_made_again(folder: Path) -> None:
    def use(content: bytes) -> str:
        return content.decode()

    kept(folder, content=b"\xff")
    assert cached(folder, ROOM, KEY, lambda: b"text", use) == ("text", False)
    assert cached(folder, ROOM, KEY, lambda: b"other", use) == ("text", True)


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_folders_and_files_are_the_users_alone(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        kept(folder / "below")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*")) if path.is_dir()}
    assert modes == {0o700}
    assert stat.S_IMODE(entry_path(folder / "below", ROOM, KEY).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
@pytest.mark.parametrize("depth", range(3))
def test_a_folder_that_others_may_write_to_is_not_used(
    folder: Path, depth: int, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    kept(folder)
    inside = (folder, *list(entry_path(folder, ROOM, KEY).parents)[1::-1])[depth]
    inside.chmod(mode)
    before = sorted(folder.rglob("*"))
    for content in (NEW, OLD):
        assert kept(folder, content=content) == (content, False)
    assert sorted(folder.rglob("*")) == before
    assert [(record.levelno, str(inside) in record.message) for record in caplog.records] == [(logging.WARNING, True)]


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o602])
def test_a_file_that_others_may_write_to_is_not_read(folder: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    kept(folder)
    entry_path(folder, ROOM, KEY).chmod(mode)
    assert kept(folder, content=NEW) == (NEW, False)
    assert kept(folder) == (NEW, True)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("what", ["folder", "room", "entry"])
def test_nothing_of_another_user_is_read(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(folder)
    path = {"folder": folder, "room": folder / ROOM, "entry": entry_path(folder, ROOM, KEY)}[what]
    real, theirs = os.fstat, path.stat().st_ino

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10])) if found.st_ino == theirs else found

    monkeypatch.setattr(os, "fstat", fstat)
    assert kept(folder, content=NEW) == (NEW, False)


def _link(path: Path) -> None:
    elsewhere = path.rename(path.with_name("elsewhere"))
    path.symlink_to(elsewhere)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _large(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(LIMITS.object_bytes + 1)


@pytest.mark.parametrize("replaced", [_link, _pipe, _device, _large])
def test_an_entry_that_is_no_small_file_is_made_again(folder: Path, replaced: Callable[[Path], None]) -> None:
    kept(folder)
    replaced(entry_path(folder, ROOM, KEY))
    assert kept(folder, content=NEW) == (NEW, False)
    assert kept(folder) == (NEW, True)


@pytest.mark.parametrize("depth", range(3))
def test_a_link_in_place_of_a_folder_is_not_followed(folder: Path, depth: int) -> None:
    kept(folder)
    _link((folder, *list(entry_path(folder, ROOM, KEY).parents)[1::-1])[depth])
    assert kept(folder, content=NEW) == (NEW, False)


def test_a_file_in_place_of_the_folder_is_no_error(folder: Path) -> None:
    folder.write_text("in the way")
    assert kept(folder) == (OLD, False)
    assert why_unusable(folder)


def test_a_write_that_fails_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert kept(folder) == (OLD, False)
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_without_a_home_kernels_are_compiled_and_the_user_is_told_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for variable in ("GRAPHKERNEL_CACHE_DIR", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    for key in (KEY, OTHER):
        assert kept(options.cache_dir(), key) == (OLD, False)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "no home folder" in why_unusable(None)


def test_a_folder_that_can_be_used_has_nothing_against_it(folder: Path) -> None:
    assert why_unusable(folder) == ""
    assert folder.is_dir()
