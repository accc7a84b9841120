"""The cache of cubins: what comes back, what makes an entry another one, and what becomes of damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgen import options
from kernelgen.targets.gpu.launch import cubins
from kernelgen.targets.gpu.launch.cubins import cached_cubin, packed, unpacked
from tests.support import cuda_kernels as kernels
from tests.support.cuda_runs import compiled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    compiled(kernels.ADD)  # skips without NVRTC
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    assert options.cache_dir() == str(tmp_path)
    return tmp_path / cubins.FOLDER


def test_second_time_comes_from_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, from_disk = cached_cubin(kernels.ROW_SUM, "row_sum")
    monkeypatch.setattr(cubins, "compile_cuda", None)
    second, again = cached_cubin(kernels.ROW_SUM, "row_sum")
    assert (from_disk, again) == (False, True)
    assert second == first
    assert second.resources["row_sum"].registers > 0
    assert len(list(folder.glob("*/*.o"))) == 1


def test_text_architecture_options_and_name_make_another_entry(folder: Path) -> None:
    cached_cubin(kernels.ADD, "add", "sm_90")
    cached_cubin(kernels.ADD, "add", "sm_80")
    cached_cubin(kernels.ADD, "plus", "sm_90")
    cached_cubin(kernels.ADD + "\n", "add", "sm_90")
    cached_cubin(kernels.ADD, "add", "sm_90", ("-maxrregcount=32",))
    assert len(list(folder.glob("*/*.o"))) == 5


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: content[:50] + b"?" + content[51:]])
def test_damaged_entry_is_compiled_again(folder: Path, damage) -> None:
    whole, _ = cached_cubin(kernels.ADD, "add")
    (path,) = folder.glob("*/*.o")
    path.write_bytes(damage(path.read_bytes()))
    mended, from_disk = cached_cubin(kernels.ADD, "add")
    assert (mended.cubin, mended.ptx, from_disk) == (whole.cubin, whole.ptx, False)
    assert cached_cubin(kernels.ADD, "add") == (mended, True)


def test_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(kernels.ADD)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path / "file"))
    assert cached_cubin(kernels.ADD, "add")[0].cubin[:4] == b"\x7fELF"


def test_packing_keeps_everything() -> None:
    whole = compiled(kernels.SOFTMAX)
    assert unpacked(packed(whole)) == whole
