"""What is measured of exported models, on one that is built here node by node as an exporter writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.exported import measured
from docs.exported import row

EPSILON = 1e-5


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A residual and the RMS norm of the sum, written out, with inputs and results."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((3, 8)).astype(np.float32) for _ in range(2))
    gamma = rng.standard_normal(8).astype(np.float32)
    nodes = [
        helper.make_node("Add", ["x", "y"], ["s"]),
        helper.make_node("Pow", ["s", "two"], ["p"]),
        helper.make_node("ReduceMean", ["p"], ["m"], axes=[-1]),
        helper.make_node("Add", ["m", "epsilon"], ["v"]),
        helper.make_node("Sqrt", ["v"], ["r"]),
        helper.make_node("Reciprocal", ["r"], ["i"]),
        helper.make_node("Mul", ["s", "i"], ["n"]),
        helper.make_node("Mul", ["gamma", "n"], ["z"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 8]) for name in ("x", "y", "z")]
    known = {"two": np.float32(2), "epsilon": np.float32(EPSILON), "gamma": gamma}
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in known.items()]
    graph = helper.make_graph(nodes, "block", ends[:2], ends[2:], constants)
    path = tmp_path / "block-float32-dynamo-static.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    total = x + y
    expected = total / np.sqrt((total**2).mean(axis=-1, keepdims=True) + EPSILON) * gamma
    np.savez(path.with_suffix(".npz"), x, y, expected=expected)
    return path


def test_a_norm_that_an_exporter_wrote_out_is_one_kernel_and_right(model: Path) -> None:
    record = measured(model, simulate=True)
    assert record["named_fusions"] == {"add_rms_norm_fusion": 1, "written_rms_norm": 1}
    assert (record["named_operators_in_kernels"], record["named_operators_without"]) == (1, 0)
    assert {target: found[1] for target, found in record["launches"].items()} == {"cpu": 1, "gpu": 1, "ascend": 1}
    assert record["launches"]["ascend"][0] == record["operators"]
    assert max(record["largest_error"].values()) < 1e-6
    assert set(record["largest_error"]) == {"cpu", "ascend"}
    assert row(model.stem, record)[:2] == ("`block` float32, dynamo", "static")
