"""Small ONNX models for tests, and what onnxruntime makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, helper, numpy_helper


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, np.ndarray],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 17,
    shapes: Mapping[str, Sequence[Any]] | None = None,
) -> ModelProto:
    """A model; ``shapes`` names extents (``("N", 4)``) where the example arrays' own are not to be fixed."""
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), (shapes or {}).get(name, array.shape)
        )
        for name, array in inputs.items()
    ]
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(
        nodes, "net", infos, [helper.make_empty_tensor_value_info(name) for name in outputs], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run_onnxruntime(of: ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs with no optimization."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(of.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(array) for array in session.run(None, dict(inputs))]
