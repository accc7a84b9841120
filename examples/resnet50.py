"""ResNet-50: the light test model that the onnx package brings, with weights that are constants or drawn anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper


def model_path() -> Path:
    """Where the onnx package keeps the model; its weights are all of one value."""
    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"


def model(seed: int = 0) -> onnx.ModelProto:
    """The model with random weights in place of the constant ones, such that values keep their size from layer to layer."""
    found = onnx.load(model_path())
    generator = np.random.default_rng(seed)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in found.graph.initializer}
    weights = [node for node in found.graph.node if node.op_type == "ConstantOfShape"]
    for node in weights:
        shape = tuple(int(extent) for extent in shapes[node.input[0]])
        found.graph.initializer.append(
            numpy_helper.from_array(_drawn(generator, node.output[0], shape), node.output[0])
        )
    kept = [node for node in found.graph.node if node.op_type != "ConstantOfShape"]
    del found.graph.node[:]
    found.graph.node.extend(kept)
    unused = {node.input[0] for node in weights}
    initializers = [tensor for tensor in found.graph.initializer if tensor.name not in unused]
    inputs = [info for info in found.graph.input if info.name not in shapes]
    graph = helper.make_graph(kept, "resnet50", inputs, list(found.graph.output), initializers)
    return helper.make_model(graph, opset_imports=list(found.opset_import), ir_version=8)


def _drawn(generator: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Weights by half of He's rule, since residual branches add up; scales and variances near 1."""
    if len(shape) > 1:
        return (generator.standard_normal(shape) * np.sqrt(0.5 / np.prod(shape[1:]))).astype(np.float32)
    around = 0.0 if name.endswith(("_b_0", "_rm_0")) else 1.0
    return (around + 0.05 * np.abs(generator.standard_normal(shape))).astype(np.float32)
