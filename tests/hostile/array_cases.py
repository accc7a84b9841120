"""Archives of arrays: the weights beside a graph, and the inputs of a run."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import graphkernel as gk
from graphkernel.runtime.inputs.samples import read_inputs
from kernelgen.tensor.constant_data import ConstantData
from tests.hostile.case import FINE, Case

WEIGHTS, INPUTS = "weights beside a graph", "inputs of a run"
CONTENT = np.arange(64, dtype=np.float32)
DIGEST = ConstantData.of(CONTENT).digest
GRAPH = f"graph main(x: f32[64]) {{\n  const c: f32[64] = sha256:{DIGEST}\n  y: f32[64] = Add(x, c)\n  return y\n}}\n"
Write = Callable[[Path, str], object]


def header(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    """What stands before an array's elements."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def entry(*parts: bytes, method: int = zipfile.ZIP_STORED) -> Write:
    """An archive with one entry."""

    def write(path: Path, name: str) -> None:
        with zipfile.ZipFile(path, "w", method) as file:
            file.writestr(f"{name}.npy", b"".join(parts))

    return write


def zeros(quarters: int) -> Write:
    """So many quarters of a GiB of zeros in a small archive."""

    def write(path: Path, name: str) -> None:
        packed = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        with packed as file, file.open(f"{name}.npy", "w", force_zip64=True) as stream:
            stream.write(header((quarters << 26,)))
            for _ in range(quarters << 4):
                stream.write(bytes(16 << 20))

    return write


def content(given: bytes) -> Write:
    """A file that is no archive."""
    return lambda path, name: path.write_bytes(given)


def stored(array: np.ndarray) -> Write:
    """An archive as numpy writes it."""
    return lambda path, name: np.savez(path, **{name: array})  # pyright: ignore[reportArgumentType]  # numpy's keywords take any array


REFUSED: Mapping[str, Write] = {
    "an empty file": content(b""),
    "no archive": content(b"import os"),
    "an archive cut off": content(b"PK\x03\x04 and nothing"),
    "a pickle": content(pickle.dumps([open])),
    "a pickle in an archive": entry(pickle.dumps([open])),
    "an array of Python objects": entry(header((1,), "|O"), pickle.dumps([open])),
    "an array that says to be larger": entry(header((1 << 60,))),
    "an array of negative size": entry(header((-1,))),
    "an array with half of its elements": entry(header((64,)), bytes(128)),
    "a header nested 8,000 deep": entry(b"\x93NUMPY\x01\x00\x40\x1f", b"(" * 8000),
    "a header of a version that is not there": entry(b"\x93NUMPY\x09\x00\x10\x00", b" " * 16),
    "an entry that is empty": entry(),
    "1.25 GiB of zeros in 6 MiB": zeros(5),
    "a damaged entry": lambda path, name: (
        stored(CONTENT)(path, name), path.write_bytes(path.read_bytes().replace(CONTENT[9:12].tobytes(), b"evil evil ev"))
    ),
    "a folder": lambda path, name: path.mkdir(),
    "a device without end": lambda path, name: path.symlink_to("/dev/zero"),
}  # fmt: skip


def weights(write: Write) -> Callable[[Path], None]:
    """The archive stands beside a graph that needs it."""

    def run(folder: Path) -> None:
        (folder / "net.gk").write_text(GRAPH, encoding="utf-8")
        write(folder / "net.gk.npz", DIGEST)
        (found,) = gk.compile(gk.load(folder / "net.gk"))(np.ones(64, np.float32))
        assert np.array_equal(found, CONTENT + 1)

    return run


def inputs(write: Write) -> Callable[[Path], None]:
    """The archive holds the input of a graph."""

    def run(folder: Path) -> None:
        write(folder / "given.npz", "x")
        (found,) = read_inputs(gk.parse(GRAPH, {DIGEST: CONTENT}), folder / "given.npz")
        assert np.array_equal(found, CONTENT)

    return run


CASES: tuple[Case, ...] = (
    *(Case(WEIGHTS, name, "FrontendError", weights(write)) for name, write in REFUSED.items()),
    Case(WEIGHTS, "other content than the digest says", "FrontendError", weights(stored(CONTENT + 1))),
    Case(
        WEIGHTS, "another data type than the graph says", "FrontendError", weights(stored(CONTENT.astype(np.float64)))
    ),
    Case(
        WEIGHTS, "a packed archive", FINE, weights(entry(header((64,)), CONTENT.tobytes(), method=zipfile.ZIP_DEFLATED))
    ),
    *(Case(INPUTS, name, "InputError", inputs(write)) for name, write in REFUSED.items()),
    Case(INPUTS, "no file", "InputError", inputs(lambda path, name: None)),
    Case(INPUTS, "no array of the name", "InputError", inputs(lambda path, name: np.savez(path, other=CONTENT))),
)
