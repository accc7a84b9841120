"""Graphs as ONNX models, checked and run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, numpy_helper

from graphkernel.export.onnx_model import onnx_model
from kernelgen.tensor.graph import Graph


def written(graph: Graph) -> ModelProto:
    """The model of a graph, which onnx finds nothing wrong with."""
    made = onnx_model(graph)
    for name, array in made.weights.items():
        made.proto.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.checker.check_model(made.proto, full_check=True)
    return made.proto


def run_written(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the graph's model by onnxruntime, without optimization."""
    return run_model(written(graph), arrays)


def run_model(model: ModelProto | str, arrays: Sequence[np.ndarray]) -> list[Any]:
    """The outputs of a model, or of the model in a file, by onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    source = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]
    given = [np.asarray(x) if np.isscalar(x) else x for x in arrays]
    return list(session.run(None, dict(zip(names, given, strict=True))))
