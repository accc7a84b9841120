"""Weights of a file are in memory once, whatever form it has."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, save_model

import graphkernel as gk
from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.importer import import_onnx
from kernelgen.tensor.graph import Graph

SHAPE = (600, 400)
VALUES = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE)
TYPES = [np.float32, np.float64, np.float16, np.int64, np.int8, np.uint16, np.bool_, ml_dtypes.bfloat16]


def model_of(*weights: TensorProto) -> ModelProto:
    """The weights themselves, cast where need be, as results."""
    names = [weight.name for weight in weights]
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in names]
    outputs = [helper.make_tensor_value_info(f"{w.name}_out", w.data_type, tuple(w.dims)) for w in weights]
    graph = helper.make_graph(nodes, "g", [], outputs, initializer=list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def constants(graph: Graph) -> list[np.ndarray]:
    return [value.constant for value in graph.outputs if value.constant is not None]


def written(path: Path, model: ModelProto, beside: bool = False) -> Path:
    file = path / "m.onnx"
    save_model(model, file, save_as_external_data=beside, location="m.data", size_threshold=0)
    return file


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("of", TYPES)
def test_weights_of_every_type_are_those_of_the_model_in_memory(tmp_path: Path, of: Any, beside: bool) -> None:
    weight = numpy_helper.from_array((VALUES % 5).astype(of), "w")
    (expected,) = constants(import_onnx(model_of(weight)))
    (found,) = constants(gk.load(written(tmp_path, model_of(weight), beside)))
    assert found.dtype == expected.dtype == np.dtype(of)
    np.testing.assert_array_equal(found, expected)


def test_elements_in_typed_fields_are_read(tmp_path: Path) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, SHAPE, VALUES.reshape(-1).astype(np.float32))
    assert not weight.raw_data
    np.testing.assert_array_equal(constants(gk.load(written(tmp_path, model_of(weight))))[0], VALUES)


def test_more_or_less_elements_than_the_shape_has_are_refused(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(VALUES.astype(np.float32), "w")
    for content in (weight.raw_data[:-4], weight.raw_data + bytes(4)):
        damaged = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=SHAPE, raw_data=content)
        with pytest.raises(FrontendError, match="initializer w: a tensor that cannot be read"):
            gk.load(written(tmp_path, model_of(damaged)))


def test_loading_takes_the_memory_of_the_weights_once(tmp_path: Path) -> None:
    weights = [numpy_helper.from_array((VALUES + k).astype(np.float32), f"w{k}") for k in range(20)]
    file = written(tmp_path, model_of(*weights))
    gk.load(file)  # imports and tables
    tracemalloc.start()
    graph = gk.load(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(graph.outputs) == 20
    assert peak < 1.2 * file.stat().st_size


def test_data_beside_a_model_is_mapped(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(VALUES.astype(np.float32), "w")
    (found,) = constants(gk.load(written(tmp_path, model_of(weight), beside=True)))
    assert isinstance(found.base, np.memmap)
    assert not found.flags.writeable


def test_equal_weights_are_one_array(tmp_path: Path) -> None:
    weights = [numpy_helper.from_array(VALUES.astype(np.float32), f"w{k}") for k in range(3)]
    found = constants(gk.load(written(tmp_path, model_of(*weights))))
    assert len(found) == 3
    assert len({id(array) for array in found}) == 1
