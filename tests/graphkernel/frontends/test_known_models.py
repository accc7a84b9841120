"""A model that was loaded before: the same graph, without onnx, as long as the file is the same."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.errors import FrontendError, PackageError
from graphkernel.frontends import known_models
from graphkernel.frontends.load import load as load_anew
from graphkernel.packages import kept_weights
from graphkernel.runtime.kernel_cache import cached_kernels
from kernelgen.native import mapped
from kernelgen.tensor.constant_data import ConstantData

pytestmark = [
    pytest.mark.release_memory,
    pytest.mark.skipif(not mapped.is_supported(), reason="models are kept on x86-64 Linux"),
]

WEIGHT = np.random.default_rng(0).normal(size=(64, 48)).astype(np.float32)
BIAS = np.arange(48, dtype=np.float32)


def written(path: Path, factor: float = 2.0, as_floats: bool = False, external: bool = False) -> Path:
    """A model with a weight in the file, another in the form of numbers, and names that are no identifiers."""
    bias = (
        helper.make_tensor("b", TensorProto.FLOAT, BIAS.shape, BIAS)
        if as_floats
        else numpy_helper.from_array(BIAS, "b")
    )
    weights = [
        numpy_helper.from_array(WEIGHT, "w"),
        bias,
        numpy_helper.from_array(np.array(factor, np.float32), "factor_0"),
    ]
    nodes = [
        helper.make_node("MatMul", ["/in/x:0", "w"], ["m"], name="/layer/MatMul"),
        helper.make_node("Add", ["m", "b"], ["a_0"], name="/layer/Add_0"),
        helper.make_node("Mul", ["a_0", "factor_0"], ["s"], name="/layer/Mul"),
        helper.make_node("Softmax", ["s"], ["/out/y"], name="/layer/Softmax", axis=-1),
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("/in/x:0", TensorProto.FLOAT, ["N", 64])],
        [helper.make_tensor_value_info("/out/y", TensorProto.FLOAT, ["N", 48])], weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save_model(model, path, save_as_external_data=external, size_threshold=1024, location="weights.bin")
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(known_models, "is_kept", lambda *_: True)
    return tmp_path / "cache"


def kept(folder: Path) -> int:
    return sum(entry.target == known_models.ROOM for entry in cached_kernels(folder))


def arrays_of(graph: gk.Graph) -> list[np.ndarray]:
    return [node.data.array for node in graph.nodes if node.data is not None and node.data.array is not None]


def described(graph: gk.Graph) -> tuple[object, ...]:
    labels = [node.name for node in graph.nodes if node.data is None]
    return str(graph), labels, dict(graph.origins), graph.derived, [array.tobytes() for array in arrays_of(graph)]


@pytest.mark.parametrize("as_floats", [False, True])
def test_it_is_the_same_graph(tmp_path: Path, folder: Path, as_floats: bool) -> None:
    path = written(tmp_path / "net.onnx", as_floats=as_floats)
    first, second, anew = gk.load(path), gk.load(path), load_anew(path)
    assert described(first) == described(second) == described(anew)
    assert kept(folder) == 1
    assert not any(
        node.data.array.flags.writeable for node in second.nodes if node.data and node.data.array is not None
    )
    assert next(folder.rglob("*.o")).stat().st_size < WEIGHT.nbytes


UNNEEDED = {"onnx", "islpy", "llvmlite", "pydantic", "graphkernel.communication", "kernelgen.strict_json"}


def test_a_process_that_runs_a_model_has_no_onnx(tmp_path: Path) -> None:
    path = written(tmp_path / "net.onnx")
    program = (
        "import sys, graphkernel as gk\n"
        "gk.compile(gk.load(sys.argv[1]))\n"
        f"print(*sorted({UNNEEDED} & sys.modules.keys()))"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, timeout=120
        ).stdout.strip()
        for _ in range(2)
    ]
    assert told == ["", ""]


def test_another_file_in_its_place_is_loaded(tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path / "net.onnx")
    gk.load(path)
    found, size = path.stat(), path.stat().st_size
    written(path, factor=3.0)
    assert path.stat().st_size == size
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))  # whoever copies a file may keep its time
    assert described(gk.load(path)) == described(load_anew(path))
    assert kept(folder) == 2


def test_other_extents_are_another_graph(tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path / "net.onnx")
    graphs = [gk.load(path), gk.load(path, dims={"N": 3}), gk.load(path, dims={"N": 4}), gk.load(path, dims={"N": 3})]
    assert [str(graph.inputs[0].type.shape[0]) for graph in graphs] == ["N", "3", "4", "3"]
    assert kept(folder) == 3


def test_data_in_other_files_is_read_each_time(tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path / "net.onnx", external=True)
    gk.load(path)
    assert kept(folder) == 0
    content = bytearray((tmp_path / "weights.bin").read_bytes())
    content[:4] = np.float32(7.0).tobytes()
    (tmp_path / "weights.bin").write_bytes(content)
    assert any(array.size and array.reshape(-1)[0] == 7.0 for array in arrays_of(gk.load(path)))


def test_what_is_no_model_is_refused_as_ever(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"no model")
    for path in (tmp_path / "net.onnx", tmp_path / "nothing.onnx", tmp_path / "net.txt"):
        with pytest.raises(FrontendError):
            gk.load(path)
    assert kept(folder) == 0


def test_what_is_damaged_is_loaded_again(tmp_path: Path, folder: Path) -> None:
    path = written(tmp_path / "net.onnx")
    expected = described(gk.load(path))
    entry = next(folder.rglob("*.o"))
    entry.write_bytes(entry.read_bytes()[:-50])
    assert described(gk.load(path)) == expected


@pytest.fixture
def weights(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the cache with the weight of ``net.onnx``, which was loaded before."""
    monkeypatch.setattr(kept_weights, "LARGE", WEIGHT.nbytes)
    gk.load(written(tmp_path / "net.onnx"))
    (entry,) = (folder / kept_weights.ROOM).rglob("*.o")
    return entry


def spoil(entry: Path) -> None:
    content = bytearray(entry.read_bytes())
    content[-1] ^= 1
    entry.write_bytes(content)


def test_a_damaged_weight_is_read_from_the_model(tmp_path: Path, weights: Path) -> None:
    expected = described(gk.load(tmp_path / "net.onnx"))
    spoil(weights)
    assert described(gk.load(tmp_path / "net.onnx")) == expected


def test_a_damaged_weight_of_a_model_that_has_changed_is_told(tmp_path: Path, weights: Path) -> None:
    spoil(weights)
    graph = gk.load(tmp_path / "net.onnx")
    content = (tmp_path / "net.onnx").read_bytes().replace(WEIGHT.tobytes(), (WEIGHT + 1.0).tobytes())
    (tmp_path / "net.onnx").write_bytes(content)
    with pytest.raises(PackageError, match="changed after it was loaded"):
        described(graph)


def test_weights_are_held_against_their_digests_when_they_are_asked_for() -> None:
    data, read = ConstantData.of(WEIGHT), list[str]()
    found = kept_weights.WeightsOnDemand(
        {"known": BIAS}, {data.digest: WEIGHT, "damaged": BIAS}, (data.digest, "damaged", "missing"),
        lambda digest: read.append(digest) or BIAS,
    )  # fmt: skip
    assert set(found) == {"known", data.digest, "damaged", "missing"}
    assert "damaged" in found
    assert "other" not in found
    assert found[data.digest].tobytes() == WEIGHT.tobytes()
    assert read == []
    assert [found[name] is BIAS for name in ("damaged", "missing", "damaged", "known")] == [True] * 4
    assert read == ["damaged", "missing"]
    with pytest.raises(KeyError):
        found["other"]


def test_keeping_a_model_takes_no_copy_of_its_weights(tmp_path: Path) -> None:
    file, warm = tmp_path / "large.onnx", written(tmp_path / "warm.onnx")
    weight = np.random.default_rng(1).normal(size=(2048, 2048)).astype(np.float32)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2048]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "net",
        info[:1],
        info[1:],
        [numpy_helper.from_array(weight, "w")],
    )
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), file)
    gk.load(warm)  # imports and tables
    tracemalloc.start()
    found = gk.load(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.operators) == 1
    assert peak < 1.5 * weight.nbytes
