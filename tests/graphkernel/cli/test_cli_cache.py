"""The commands of the kernel cache, on files that kernelgen wrote."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import graphkernel as gk
from graphkernel import ops
from graphkernel.cli import CHECK_FAILED, app
from graphkernel.runtime.kernel_cache import cache_folder, cached_kernels
from kernelgen.options import cache_dir

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    for number in (1.0, 2.0):
        gk.compile(gk.trace(lambda x, by=number: ops.exp(x * by), gk.spec((3, 4))), 2)(np.ones((3, 4), np.float32))
    return tmp_path


def call(*arguments: str, exit_code: int = 0) -> str:
    found = RUNNER.invoke(app, ["cache", *arguments], catch_exceptions=False)
    assert found.exit_code == exit_code, found.output
    return found.stdout


def doctor() -> str:
    return RUNNER.invoke(app, ["doctor"], catch_exceptions=False).stdout


def test_both_packages_mean_the_same_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == Path(cache_dir() or "") == folder
    assert call("path") == f"{folder}\n"
    monkeypatch.delenv("GRAPHKERNEL_CACHE_DIR")
    assert cache_folder() == Path(cache_dir() or "")


def test_kernels_are_listed_and_whole(folder: Path) -> None:
    entries = cached_kernels(folder)
    assert sorted(entry.target for entry in entries) == ["cpu", "cpu", "kernels", "kernels"]
    head, *rows = call("ls").splitlines()
    assert head.split() == ["kernel", "target", "bytes", "written"]
    assert [row.split()[0] for row in rows] == [entry.path.stem for entry in entries]
    assert call("verify") == "4 whole, 0 damaged\n"


def test_a_damaged_kernel_is_named_removed_and_compiled_again(folder: Path) -> None:
    entry, *_ = cached_kernels(folder)
    entry.path.write_bytes(entry.path.read_bytes()[:-1] + b"?")
    assert f"damaged: {entry.path}" in call("verify", exit_code=CHECK_FAILED)
    assert call("prune").startswith("removed 1 kernel, ")
    assert call("verify") == "3 whole, 0 damaged\n"


def test_the_oldest_go_until_the_rest_is_small_enough(folder: Path) -> None:
    entry, other, *rest = cached_kernels(folder)
    os.utime(entry.path, (0, 0))
    with other.path.open("r+b") as file:
        file.truncate(0)  # not whole: it goes whatever the limit is
    assert "1 kernel, 0 B" in call("prune")
    assert [left.path for left in cached_kernels(folder)] == [each.path for each in (entry, *rest)]
    assert call("prune", "--max-size", "0").startswith("removed 3 kernels")
    assert cached_kernels(folder) == ()


def test_what_a_stopped_process_left_goes_when_it_is_old(folder: Path) -> None:
    entry, *_ = cached_kernels(folder)
    old, new = (entry.path.with_name(f"{digit * 16}.part") for digit in "01")
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    call("prune")
    assert (old.exists(), new.exists()) == (False, True)


def test_prune_removes_nothing_that_is_no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    sources = [tmp_path / "build" / "ab" / name for name in ("main.o", f"{'f' * 63}.o", "notes.part")]
    sources[0].parent.mkdir(parents=True)
    for path in sources:
        path.touch()
        os.utime(path, (0, 0))
    call("prune", "--max-size", "0")
    assert all(path.exists() for path in sources)


def test_a_folder_that_cannot_be_used_is_named_with_the_reason(folder: Path) -> None:
    assert re.search(f"kernel cache +{folder}\n", doctor())
    assert re.search("kernel cache, state +usable, 4 kernels\n", doctor())
    folder.chmod(0o777)
    assert "can be written by other users" in doctor()
    found = RUNNER.invoke(app, ["cache", "path"])
    assert (found.exit_code, found.stdout) == (CHECK_FAILED, f"{folder}\n")
    assert "can be written by other users" in found.stderr
    folder.chmod(0o700)


def test_doctor_says_what_becomes_of_the_shared_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'graphkernel[farm]'")
    for url, secret, state in (
        ("", "", "none: GRAPHKERNEL_SHARED_CACHE is not set"),
        (f"file://{tmp_path}", "short", "not used: GRAPHKERNEL_SHARED_CACHE_KEY needs 16 characters or more"),
        (f"file://{tmp_path}", "s" * 16, "within reach"),
        ("unheard://of", "s" * 16, "out of reach: ValueError: Protocol not known: unheard"),
    ):
        monkeypatch.setenv("GRAPHKERNEL_SHARED_CACHE", url)
        monkeypatch.setenv("GRAPHKERNEL_SHARED_CACHE_KEY", secret)
        assert re.search(f"shared cache, state +{state}\n", doctor())


def test_doctor_shows_what_threads_depend_on() -> None:
    assert re.search("LLVM target +[a-z0-9]", doctor())
    assert re.search("threads of onnxruntime +one pool of [0-9]+ for all models", doctor())
    assert re.search("threads of a kernel +[0-9]+ of [0-9]+ processors", doctor())
