"""Expansions against the function bodies by which ONNX itself defines operators: a second oracle, written by others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import FunctionProto, NodeProto, TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator

from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.expanders.base import Declined, expand
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import Attrs, TensorType, dtype

EXPANDERS = {entry.name: entry for entry in builtin_catalogue().expanders}
X, ROW = (3, 4, 5), (5,)
CASES = [
    ("ReLU", {}, "Relu", {}, [X]),
    ("Elu", {"alpha": 0.7}, "Elu", {"alpha": 0.7}, [X]),
    ("LeakyReLU", {"alpha": 0.2}, "LeakyRelu", {"alpha": 0.2}, [X]),
    ("LeakyReLUExt", {"negative_slope": 0.2}, "LeakyRelu", {"alpha": 0.2}, [X]),
    ("HSigmoid", {}, "HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}, [X]),
    ("HSwish", {}, "HardSwish", {}, [X]),
    ("HShrink", {"lambd": 0.3}, "Shrink", {"lambd": 0.3, "bias": 0.0}, [X]),
    ("Gelu", {"approximate": "none"}, "Gelu", {"approximate": "none"}, [X]),
    ("Gelu", {"approximate": "tanh"}, "Gelu", {"approximate": "tanh"}, [X]),
    ("GeLU", {}, "Gelu", {"approximate": "tanh"}, [X]),
    ("Softplus", {}, "Softplus", {}, [X]),
    ("Softsign", {}, "Softsign", {}, [X]),
    ("Softmax", {"axis": (1,)}, "Softmax", {"axis": 1}, [X]),
    ("LogSoftmax", {"axis": (-1,)}, "LogSoftmax", {"axis": -1}, [X]),
    (
        "LayerNorm",
        {"begin_norm_axis": 2, "begin_params_axis": 2, "epsilon": 1e-3},
        "LayerNormalization",
        {"axis": 2, "epsilon": 1e-3},
        [X, ROW, ROW],
    ),
    ("RmsNorm", {"epsilon": 1e-3}, "RMSNormalization", {"axis": -1, "epsilon": 1e-3}, [X, ROW]),
]


def function_of(node: NodeProto, shapes: list[tuple[int, ...]]) -> FunctionProto:
    """The body of an operator's newest definition, given its attributes and operand types where it depends on them."""
    schema: Any = defs.get_schema(node.op_type)  # its functions are not in onnx's type stubs
    if schema.has_function:
        return schema.function_body
    types = [helper.make_tensor_type_proto(TensorProto.FLOAT, shape).SerializeToString() for shape in shapes]
    assert schema.has_context_dependent_function, f"ONNX has no function for {node.op_type}"
    versions = schema.context_dependent_function_opset_versions
    body = schema.get_context_dependent_function_with_opset_version(max(versions), node.SerializeToString(), types)
    function = FunctionProto()
    function.ParseFromString(body)
    return function


@pytest.mark.parametrize(("name", "attributes", "onnx_name", "onnx_attributes", "shapes"), CASES)
@pytest.mark.parametrize("target", ["cpu", "ascend"])
def test_the_function_body_agrees(name, attributes, onnx_name, onnx_attributes, shapes, target) -> None:
    operands = [f"x{i}" for i in range(len(shapes))]
    results = [output.name for output in defs.get_schema(onnx_name).outputs]
    node = helper.make_node(onnx_name, operands, results, **onnx_attributes)
    function = function_of(node, shapes)
    rng = np.random.default_rng(1)
    arrays = [(rng.standard_normal(shape) * rng.choice([0.1, 1, 4], shape)).astype(np.float32) for shape in shapes]
    evaluator = ReferenceEvaluator(function)
    feeds = dict(zip(function.input, arrays, strict=False))
    theirs: list[Any] = list(evaluator.run(None, feeds, attributes=defaults(function, node)))

    builder = Builder()
    inputs = tuple(builder.parameter(f"x{i}", TensorType(shape, dtype("float32"))) for i, shape in enumerate(shapes))
    found = expand(EXPANDERS[name], builder.node(ops.OPS[name], inputs, Attrs.of(attributes)), inputs, builder, target)
    assert not isinstance(found, Declined)
    np.testing.assert_allclose(
        evaluate(Graph("expansion", inputs, found[:1]), arrays)[0], theirs[0], rtol=2e-5, atol=2e-6
    )


def defaults(function: FunctionProto, node: NodeProto) -> dict[str, object]:
    """The attributes that the body refers to: those of the node, else the defaults."""
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in function.attribute_proto}
    return given | {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
