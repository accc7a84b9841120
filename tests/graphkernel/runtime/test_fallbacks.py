"""What onnxruntime lacks leaves its region alone, and is computed as the operator is defined: by numpy formulas here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel.errors import RuntimeFailure
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.ops.library.host import ONNX, attributes_to_json
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost, RegionStep
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import TensorType, dtype
from tests.support.onnx_models import model

Array = np.ndarray[Any, Any]
HOST = OnnxRuntimeHost(threads=1)
X = np.array([[-3.0, -1.0, -0.25, 0.0], [0.25, 1.0, 2.0, 3.0]])
SCALE, ALPHA, SIXTH = (
    float(np.float32(number)) for number in (1.05070102214813232421875, 1.67326319217681884765625, 1 / 6)
)
TOLERANCE = {"float64": 1e-12, "bfloat16": 2**-7}


def rows(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: x / function(x)


DEFINITIONS: Mapping[str, tuple[int, dict[str, Any], Callable[[Array], Array]]] = {
    "Asinh": (17, {}, np.arcsinh),
    "Atan": (17, {}, np.arctan),
    "Cosh": (17, {}, np.cosh),
    "Elu": (17, {"alpha": 0.5}, lambda x: np.where(x < 0, 0.5 * np.expm1(x), x)),
    "HardSigmoid": (17, {"alpha": 0.25, "beta": 0.5}, lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
    "HardSwish": (17, {}, lambda x: x * np.clip(x * SIXTH + 0.5, 0, 1)),
    "Hardmax": (17, {"axis": 1}, lambda x: (np.arange(4) == x.argmax(1)[:, None]).astype(x.dtype)),
    "LpNormalization": (17, {"p": 1, "axis": 1}, rows(lambda x: np.abs(x).sum(1, keepdims=True))),
    "Mish": (18, {}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "Selu": (17, {}, lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x))),
    "Sinh": (17, {}, np.sinh),
    "Softplus": (17, {}, lambda x: np.log1p(np.exp(x))),
    "Softsign": (17, {}, lambda x: x / (1 + np.abs(x))),
    "Tan": (17, {}, np.tan),
    "ThresholdedRelu": (17, {"alpha": 0.5}, lambda x: np.where(x > 0.5, x, 0)),
}


def generic(builder: Builder, op_type: str, opset: int, attributes: dict[str, Any], value: Any) -> Any:
    """The operator as the importer makes it where we have no rule."""
    proto = helper.make_node(op_type, ["x"], ["y"], **attributes)
    return builder.emit(
        ONNX, value, op_type=op_type, domain="", opset=opset, attributes=attributes_to_json(proto.attribute),
        result_types=(str(value.type),),
    )  # fmt: skip


@pytest.mark.parametrize("of", TOLERANCE)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_an_operator_alone_is_what_its_definition_says(name: str, of: str) -> None:
    opset, attributes, definition = DEFINITIONS[name]
    builder = Builder()
    x = builder.parameter("x", TensorType((2, 4), dtype(of)))
    graph = Graph("net", (x,), (generic(builder, name, opset, attributes, x),))
    executable = gk.compile(graph, 0, host=HOST)
    given = X.astype(dtype(of).numpy)
    (got,) = executable(given)
    assert got.dtype == given.dtype
    wanted = definition(given.astype(np.float64))
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=TOLERANCE[of], atol=TOLERANCE[of])
    for entry in executable.report.fallbacks:
        assert entry.operator == name
        assert entry.code in ("host-onnx.reference", "host-onnxruntime")


@pytest.mark.parametrize("lacking", ["Selu", "ThresholdedRelu", "Hardmax"])
@pytest.mark.parametrize("place", range(5))
def test_only_the_operator_that_is_lacking_leaves_its_region(lacking: str, place: int) -> None:
    opset, attributes, definition = DEFINITIONS[lacking]
    builder = Builder()
    x = value = builder.parameter("x", TensorType((2, 4), dtype("float64")))
    wanted = X
    for number in range(5):
        name, function = ("Tanh", np.tanh) if number != place else (lacking, definition)
        value = generic(builder, name, max(opset, 17), attributes if number == place else {}, value)
        wanted = function(wanted)
    executable = gk.compile(Graph("net", (x,), (value,)), 0, host=HOST)
    np.testing.assert_allclose(executable(X)[0], wanted, rtol=1e-12, atol=1e-12)
    held = [node for step in executable.plan.steps if isinstance(step, RegionStep) for node in step.nodes]
    assert [entry.operator for entry in executable.report.fallbacks] == [lacking]
    assert len(held) == 4
    assert executable.report.host[place if place == 0 else 1].library == "onnx.reference"


def test_neighbours_of_an_operator_that_is_lacking_stay_right() -> None:
    """The reference evaluator cannot pad by negative amounts; it was handed that, beside a Resize that onnxruntime lacks."""
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["a"]),
        helper.make_node("Resize", ["a", "", "scales"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    ]
    constants = {
        "pads": np.array([0, 0, -1, 0, 0, 0, 0, -1]), "scales": np.array([1, 1, 2, 2], np.float32), "w": np.eye(8),
    }  # fmt: skip
    x = np.arange(20.0).reshape(1, 1, 4, 5)
    executable = gk.compile(import_onnx(model(nodes, {"x": x}, constants=constants)))
    cut = x[:, :, 1:, :4]
    np.testing.assert_array_equal(executable(x)[0], cut.repeat(2, 2).repeat(2, 3))
    assert [entry.operator for entry in executable.report.fallbacks] == ["Resize"]


class Refusing(OnnxRuntimeHost):
    """Declines every region of more than one operator, and nothing alone."""

    def region(self, name: str, nodes: Any, slots: Any, outputs: Any) -> RegionStep:
        if len(nodes) > 1:
            raise RuntimeFailure("too many together")
        return super().region(name, nodes, slots, outputs)


def test_operators_that_fail_only_together_run_alone() -> None:
    builder = Builder()
    x = value = builder.parameter("x", TensorType((2, 4), dtype("float64")))
    for _ in range(3):
        value = generic(builder, "Tanh", 17, {}, value)
    executable = gk.compile(Graph("net", (x,), (value,)), 0, host=Refusing(threads=1))
    np.testing.assert_allclose(executable(X)[0], np.tanh(np.tanh(np.tanh(X))))
    assert {(entry.code, entry.reason) for entry in executable.report.fallbacks} == {
        ("host-onnxruntime", "too many together")
    }


def test_our_own_operators_fall_back_to_their_numpy_meaning() -> None:
    executable = gk.compile(gk.trace(lambda x: gk.ops.sinh(gk.ops.matmul(x, x)), gk.spec((4, 4))), 0, host=HOST)
    (entry,) = executable.report.fallbacks
    assert (entry.operator, entry.code) == ("Sinh", "host-numpy")


def test_float16_and_bfloat16_are_rounded_once() -> None:
    """Of a long sum nothing is lost on the way."""
    builder = Builder()
    x = builder.parameter("x", TensorType((1, 4096), dtype("bfloat16")))
    proto = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1)
    value = builder.emit(
        ONNX, x, op_type="ReduceSum", domain="", opset=17, attributes=attributes_to_json(proto.attribute),
        result_types=("bf16[1, 1]",),
    )  # fmt: skip
    (got,) = gk.compile(Graph("net", (x,), (value,)), 0, host=HOST)(np.ones((1, 4096), ml_dtypes.bfloat16))
    assert float(got[0, 0]) == 4096.0
