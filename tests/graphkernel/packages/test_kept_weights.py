"""Large weights of a model that was loaded before lie in mapped files of the cache, whatever becomes of these."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.frontends import known_models
from graphkernel.packages import kept_weights
from graphkernel.packages.kept_weights import LARGE, Weight
from graphkernel.runtime.kernel_cache import cached_kernels
from kernelgen.native import mapped
from kernelgen.system.mapped import let_go
from kernelgen.tensor.constant_data import ConstantData

pytestmark = [
    pytest.mark.release_memory,
    pytest.mark.skipif(not mapped.is_supported(), reason="models are kept on x86-64 Linux"),
]

X = np.random.default_rng(1).normal(size=(3, 512)).astype(np.float32)
WEIGHTS = [np.random.default_rng(k).normal(size=(512, 512)).astype(np.float32) for k in range(2)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(known_models, "is_kept", lambda *_: True)
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    nodes = [helper.make_node("MatMul", ["x", "a"], ["m"]), helper.make_node("MatMul", ["m", "b"], ["y"])]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 512]) for name in "xy"]
    weights = [numpy_helper.from_array(array, name) for array, name in zip(WEIGHTS, "ab", strict=True)]
    graph = helper.make_graph(nodes, "net", infos[:1], infos[1:], weights)
    path = tmp_path / "net.onnx"
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def files(folder: Path) -> list[Path]:
    return [entry.path for entry in cached_kernels(folder) if entry.target == kept_weights.ROOM]


def loaded(path: Path) -> tuple[gk.Graph, int]:
    """The graph, and the most memory that numpy and Python took for it beyond what they had."""
    tracemalloc.start()
    found = gk.load(path)
    assert found.operators
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, peak


def arrays_of(graph: gk.Graph) -> list[np.ndarray]:
    return [node.data.array for node in graph.nodes if node.data is not None and node.data.array is not None]


def test_the_second_time_they_take_no_memory_of_their_own(model: Path, folder: Path) -> None:
    first = gk.load(model)
    second, peak = loaded(model)
    assert peak < WEIGHTS[0].nbytes / 2
    for graph in (first, second):
        for array, expected in zip(arrays_of(graph), WEIGHTS, strict=True):
            let_go(array)  # what was in memory only would be gone
            assert np.array_equal(array, expected)
            assert not array.flags.writeable
    assert len(files(folder)) == 1
    assert all(entry.is_whole for entry in cached_kernels(folder))


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4])


def altered(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [removed, emptied, cut, altered])
def test_what_is_missing_or_damaged_is_read_from_the_model(
    model: Path, folder: Path, harm: Callable[[Path], None]
) -> None:
    expected = gk.compile(gk.load(model))(X)
    harm(files(folder)[0])
    again = gk.load(model)
    assert all(np.array_equal(one, other) for one, other in zip(arrays_of(again), WEIGHTS, strict=True))
    assert np.array_equal(gk.compile(again)(X)[0], expected[0])


def test_extents_and_copies_of_a_model_share_them(model: Path, folder: Path) -> None:
    copy = model.with_name("copy.onnx")
    copy.write_bytes(model.read_bytes())
    for graph in (gk.load(model), gk.load(model, dims={"N": 3}), gk.load(copy)):
        assert len(graph.operators) == 2
    assert len(files(folder)) == 1


def test_files_are_of_bounded_size_and_small_weights_in_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_weights, "FILE_BYTES", 4 * LARGE)
    arrays = [np.full(size, k, np.uint8) for k, size in enumerate((LARGE, LARGE - 1, 2 * LARGE, 3 * LARGE, 9 * LARGE))]
    data = [ConstantData.of(array) for array in arrays]
    weights = [Weight(each.digest, "uint8", array.shape) for each, array in zip(data, arrays, strict=True)]
    kept_weights.keep_weights(folder, weights, {each.digest: each.array for each in data if each.array is not None})
    found = list(kept_weights.kept_weights(folder, weights))
    assert [each.digest for each in found] == [data[k].digest for k in (0, 2, 3, 4)]
    assert sorted(path.stat().st_size // LARGE for path in files(folder)) == [3, 3, 9]
