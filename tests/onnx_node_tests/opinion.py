"""A second opinion on an answer that is not the expected one: onnxruntime's, and the randomness of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from tests.onnx_node_tests.cases import NodeCase
from tests.support.onnx_models import run_onnxruntime

RANDOM = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
Answer = Sequence[np.ndarray]
Agrees = Callable[[Answer, Answer], bool]


def excuse(case: NodeCase, inputs: Sequence[Any], found: Answer, expected: Answer, agrees: Agrees) -> str:
    """Why an answer is right although another one was expected; empty when it is wrong."""
    if any(node.op_type in RANDOM for node in case.model.graph.node) and _alike(found, expected):
        return "the operator is random"
    named = dict(zip((info.name for info in case.model.graph.input), inputs, strict=True))
    for who, answer in (("onnxruntime", run_onnxruntime), ("onnxruntime, node by node", _node_by_node)):
        try:
            if agrees(found, answer(case.model, named)):
                return f"{who} gives the same"
        except Exception:  # onnxruntime raises many classes; then it has no opinion
            continue
    return ""


def failure_of_onnxruntime(case: NodeCase) -> str:
    """The first line of what onnxruntime says where it fails on a case; empty where it runs it."""
    for inputs, _ in case.data_sets:
        given = [np.asarray(value) if isinstance(value, np.generic) else value for value in inputs]
        try:
            run_onnxruntime(case.model, dict(zip((info.name for info in case.model.graph.input), given, strict=True)))
        except Exception as error:  # onnxruntime raises many classes
            return str(error).strip().partition("\n")[0][:200] or type(error).__name__
    return ""


def _alike(found: Answer, expected: Answer) -> bool:
    return [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]


def _node_by_node(model: ModelProto, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """Each node in a model of its own, so that every result is rounded to its data type."""
    values: dict[str, np.ndarray] = {name: np.asarray(array) for name, array in inputs.items()}
    for node in model.graph.node:
        names = [name for name in node.output if name]
        single = _single(model, node, {name: values[name] for name in node.input if name})
        values.update(zip(names, run_onnxruntime(single, {n: values[n] for n in node.input if n}), strict=True))
    return [values[info.name] for info in model.graph.output]


def _single(model: ModelProto, node: NodeProto, operands: Mapping[str, np.ndarray]) -> ModelProto:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in operands.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "single", infos, results)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
