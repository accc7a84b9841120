"""Pages of mapped weights go when nobody needs them, and come back."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

import graphkernel as gk
from graphkernel.packages import container
from kernelgen.system.mapped import MUCH, let_go
from kernelgen.tensor.graph import Graph

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system is asked as on Linux")

VALUES = np.arange(3 * MUCH // 4, dtype=np.float32)


def resident(file: Path) -> int:
    """Bytes of a file's mappings that are in this process's memory."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024 if inside else 0
        elif "-" in line.split()[0]:
            inside = line.endswith(str(file))
    return found


def mapped(file: Path, offset: int, mode: str = "r") -> np.ndarray:
    file.write_bytes(bytes(offset) + VALUES.tobytes())
    return np.memmap(file, VALUES.dtype, mode, offset, VALUES.shape).view(np.ndarray)  # pyright: ignore[reportArgumentType, reportCallIssue]


@pytest.mark.parametrize("offset", [0, 4, mmap.PAGESIZE, mmap.PAGESIZE + 64])
def test_pages_go_and_come_back(offset: int, tmp_path: Path) -> None:
    array = mapped(tmp_path / "data", offset)
    assert (array == VALUES).all()
    assert resident(tmp_path / "data") >= VALUES.nbytes
    let_go(array[:])
    assert resident(tmp_path / "data") < mmap.PAGESIZE
    assert (array == VALUES).all()


def test_what_was_written_stays(tmp_path: Path) -> None:
    array = mapped(tmp_path / "data", 0, "c")
    array[:] = 5.0
    array.setflags(write=False)
    let_go(array)
    assert (array == 5.0).all()


def test_arrays_in_no_file_stay() -> None:
    for array in (VALUES, np.frombuffer(VALUES.tobytes(), np.float32)):
        let_go(array)
        assert (array == np.arange(VALUES.size, dtype=np.float32)).all()


WEIGHT = np.linspace(-1, 1, 1024 * 1024, dtype=np.float32).reshape(1024, 1024)
X = np.ones((2, 1024), np.float32)


@pytest.fixture
def loaded(tmp_path: Path) -> Graph:
    """tanh(x @ WEIGHT.T), with the weight beside the model."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape) for name in "xy"]
    nodes = [helper.make_node("Gemm", ["x", "w"], ["p"], transB=1), helper.make_node("Tanh", ["p"], ["y"])]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [numpy_helper.from_array(WEIGHT, "w")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save_model(made, tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    return gk.load(tmp_path / "m.onnx")


def check(exe: Any) -> None:
    np.testing.assert_allclose(exe(X)[0], np.tanh(X @ WEIGHT.T), rtol=1e-4, atol=1e-4)


def test_a_model_is_loaded_compiled_and_run_without_its_weights_beside_those_of_onnxruntime(
    loaded: Graph, tmp_path: Path
) -> None:
    assert resident(tmp_path / "w.data") < mmap.PAGESIZE
    check(gk.compile(loaded))
    assert resident(tmp_path / "w.data") < WEIGHT.nbytes // 2


def test_a_package_is_written_and_read_in_pieces(
    loaded: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "PIECE", 1 << 20)
    gk.compile(loaded).save(tmp_path / "m.gkx")
    assert resident(tmp_path / "w.data") < mmap.PAGESIZE
    exe = gk.load_compiled(tmp_path / "m.gkx")
    assert resident(tmp_path / "m.gkx") < WEIGHT.nbytes // 2
    check(exe)
