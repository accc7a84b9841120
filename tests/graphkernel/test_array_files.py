"""Archives of arrays are read within bounds, and nothing but arrays comes out of them."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphkernel.errors import FrontendError
from graphkernel.system.array_files import MAGIC, read_arrays
from kernelgen.system.limits import LIMITS

BLOCK = 64 << 20


def header(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    """What stands before an array's elements."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def archive(path: Path, entries: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    """A zip of these entries."""
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return path


def zeros(path: Path, size: int) -> Path:
    """A small zip of very many zeros, packed in little time."""
    quickly = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with quickly as file, file.open("x.npy", "w", force_zip64=True) as stream:
        stream.write(header((size // 4,)))
        for _ in range(size // BLOCK):
            stream.write(bytes(BLOCK))
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read(save: Callable[..., None], tmp_path: Path) -> None:
    given = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.asfortranarray(np.eye(3, dtype=np.float16)),
        "c": np.zeros((0, 4)),
    }
    save(tmp_path / "x.npz", **given)
    found = read_arrays(tmp_path / "x.npz", FrontendError)
    assert all(np.array_equal(found[name], array) for name, array in given.items())
    assert found.keys() == given.keys()


@pytest.mark.parametrize(("entries", "said"), [
    ({"x.npy": b""}, "not an array"),
    ({"x.txt": b"hello"}, "not an array"),
    ({"x.npy": pickle.dumps(open)}, "not an array"),
    ({"x.npy": header((1,), "|O") + pickle.dumps([open])}, "Python objects"),
    ({"x.npy": header((1 << 60,))}, "is smaller"),
    ({"x.npy": header((-1,))}, "is smaller"),
    ({"x.npy": header((2,)) + bytes(3)}, "not an .npz"),
    ({"x.npy": MAGIC + b"\x01\x00\xff\xff{"}, "not an .npz"),
    ({"x.npy": MAGIC + b"\x01\x00\x00\x20" + b"(" * 8192}, "not an .npz"),
    ({"x.npy": MAGIC + b"\x09\x00\x00\x20"}, "not an .npz"),
])  # fmt: skip
def test_what_is_no_array_is_refused(entries: dict[str, bytes], said: str, tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match=said):
        read_arrays(archive(tmp_path / "x.npz", entries), FrontendError)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 and nothing")
    for path in (tmp_path / "x.npz", tmp_path, tmp_path / "nothing.npz", Path("/dev/zero")):
        with pytest.raises(FrontendError, match=r"not an \.npz file that can be read"):
            read_arrays(path, FrontendError)


def test_a_small_archive_of_many_zeros_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match="unpacked it has"):
        read_arrays(zeros(tmp_path / "x.npz", LIMITS.unpacked_bytes), FrontendError)
