"""Data beside a model is read as far as tensors hold it, and no further than memory goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx import external_data as onnx_external
from graphkernel.frontends.onnx.external_data import memory_bytes

TERABYTE = 1 << 40


def _tensor(name: str, values: np.ndarray, **entries: object) -> TensorProto:
    """A weight of the shape and type of ``values``, whose data lies elsewhere."""
    tensor = numpy_helper.from_array(values, name)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _model(folder: Path, *weights: TensorProto) -> Path:
    """``x + w0 + w1 ...`` as a file."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "y"))
    sums = ["x", *(f"sum{k}" for k in range(len(weights) - 1)), "y"]
    nodes = [helper.make_node("Add", [sums[k], w.name], [sums[k + 1]]) for k, w in enumerate(weights)]
    graph = helper.make_graph(nodes, "g", [x], [y], initializer=list(weights))
    graph.input[0].type.tensor_type.shape.dim.add(dim_value=4)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def _file_with_holes(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


W = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("entries", [{"offset": 16, "length": 16}, {"offset": 16}])
def test_data_that_fits_is_read(tmp_path: Path, entries: dict[str, int]) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16) + W.tobytes())
    graph = gk.load(_model(tmp_path, _tensor("w", W, location="w.bin", **entries)))
    np.testing.assert_array_equal(gk.compile(graph)(np.ones(4, np.float32))[0], W + 1)


@pytest.mark.parametrize(
    "entries", [{}, {"offset": 64}, {"length": TERABYTE}, {"length": 15}, {"length": 17}, {"offset": TERABYTE - 8}]
)
def test_more_or_less_data_than_a_tensor_holds_is_refused_unread(tmp_path: Path, entries: dict[str, int]) -> None:
    _file_with_holes(tmp_path / "w.bin", TERABYTE)
    with pytest.raises(FrontendError, match="tensor w holds 16 bytes, the data that it names has "):
        gk.load(_model(tmp_path, _tensor("w", W, location="w.bin", **entries)))


def test_a_tensor_beyond_memory_is_refused_unread(tmp_path: Path) -> None:
    _file_with_holes(tmp_path / "w.bin", 8 * TERABYTE)
    weight = _tensor("w", np.zeros(0, np.float64), location="w.bin")
    weight.dims[:] = [TERABYTE]
    with pytest.raises(FrontendError, match="the data beside the model takes 8388608 MiB, there are "):
        gk.load(_model(tmp_path, weight))


def test_tensors_that_share_data_count_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    path = _model(tmp_path, *(_tensor(f"w{k}", W, location="w.bin") for k in range(5)))
    monkeypatch.setattr(onnx_external, "memory_bytes", lambda: 80)
    np.testing.assert_array_equal(gk.compile(gk.load(path))(np.ones(4, np.float32))[0], 5 * W + 1)
    monkeypatch.setattr(onnx_external, "memory_bytes", lambda: 79)
    with pytest.raises(FrontendError, match="the data beside the model takes"):
        gk.load(path)


def test_the_data_of_constants_in_bodies_counts(tmp_path: Path) -> None:
    _file_with_holes(tmp_path / "w.bin", TERABYTE)
    constant = helper.make_node("Constant", [], ["v"])
    constant.attribute.append(helper.make_attribute("value", _tensor("inside", W, location="w.bin")))
    body = helper.make_graph([constant], "b", [], [helper.make_tensor_value_info("v", TensorProto.FLOAT, [4])])
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    chosen = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([chosen], "g", [condition], [result])).SerializeToString())
    with pytest.raises(FrontendError, match="tensor inside holds 16 bytes"):
        gk.load(path)


def test_packed_data_is_counted_as_it_lies(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.INT4, dims=[5], data_location=TensorProto.EXTERNAL)
    assert onnx_external._bytes_of(tensor) == 3


def test_there_is_memory() -> None:
    assert 1 << 20 < memory_bytes() < 1 << 60
