"""Operators on quantized numbers are read as what they mean, and are at most a step beside onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx

Arrays = dict[str, np.ndarray]
RNG = np.random.default_rng(0)


def numbers(*shape: int, of: type = np.int8) -> np.ndarray:
    return RNG.integers(*((-128, 128) if of is np.int8 else (0, 256)), shape).astype(of)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def zero(value: int, of: type = np.int8) -> np.ndarray:
    return np.array(value, of)


X, BYTES = numbers(2, 8, 6, 6), numbers(2, 8, 6, 6, of=np.uint8)
ROWS, WEIGHTS = numbers(5, 16), numbers(16, 8)
KERNEL = numbers(4, 8, 3, 3)
BY_CHANNEL = np.array([0.01, 0.02, 0.03, 0.015], np.float32)
CONV = (X, scale(0.04), zero(-3), KERNEL, scale(0.02), zero(0), scale(0.9), zero(5))
CASES: dict[str, tuple[str, tuple[np.ndarray | None, ...], dict[str, Any]]] = {
    "convolution": ("QLinearConv", (*CONV, RNG.integers(-900, 900, 4).astype(np.int32)), {"pads": [1, 1, 1, 1]}),
    "convolution by channels": ("QLinearConv", (*CONV[:4], BY_CHANNEL, np.zeros(4, np.int8), *CONV[6:]), {}),
    "product": ("QLinearMatMul", (ROWS, scale(0.1), zero(4), WEIGHTS, scale(0.02), zero(0), scale(0.7), zero(-9)), {}),
    "gemm": (
        "com.microsoft::QGemm",
        (ROWS, scale(0.1), zero(4), WEIGHTS.T.copy(), scale(0.02), zero(0), RNG.integers(-900, 900, 8).astype(np.int32),
         scale(0.7), zero(-9)),
        {"transB": 1},
    ),
    "gemm to floats": (
        "com.microsoft::QGemm", (ROWS, scale(0.1), zero(4), WEIGHTS, scale(0.02), zero(0)), {"alpha": 0.5}
    ),
    "sum": ("com.microsoft::QLinearAdd", (X, scale(0.117), zero(4), X[:1], scale(0.293), zero(-4), scale(0.4107), zero(1)), {}),
    "multiplication": (
        "com.microsoft::QLinearMul",
        (BYTES, scale(0.1), zero(9, np.uint8), BYTES[:1], scale(0.3), zero(4, np.uint8), scale(3), zero(1, np.uint8)), {},
    ),
    "sigmoid": ("com.microsoft::QLinearSigmoid", (X, scale(0.05), zero(4), scale(1 / 255), zero(-128)), {}),
    "leaky": ("com.microsoft::QLinearLeakyRelu", (X, scale(0.05), zero(4), scale(0.05), zero(4)), {"alpha": 0.2}),
    "softmax": (
        "com.microsoft::QLinearSoftmax", (ROWS, scale(0.05), zero(4), scale(1 / 256), zero(-128)), {"axis": -1, "opset": 13}
    ),
    "mean": ("com.microsoft::QLinearGlobalAveragePool", (X, scale(0.05), zero(4), scale(0.02), zero(-4)), {}),
    "joined": (
        "com.microsoft::QLinearConcat", (scale(0.1), zero(0), X, scale(0.05), zero(4), X[:, :3], scale(0.2), zero(1)),
        {"axis": 1},
    ),
    "greatest": ("MaxPool", (X,), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
}  # fmt: skip


def model(name: str) -> tuple[ModelProto, Arrays]:
    """One node; scales, zero points and what stands behind the first operand of numbers are constants."""
    called, operands, attributes = CASES[name]
    domain, _, operator = called.rpartition("::")
    arrays = {f"x{place}": each for place, each in enumerate(operands) if each is not None}
    order = [f"x{place}" if each is not None else "" for place, each in enumerate(operands)]
    first = next(key for key, each in arrays.items() if each.ndim > 1)
    info = helper.make_tensor_value_info(
        first, helper.np_dtype_to_tensor_dtype(arrays[first].dtype), arrays[first].shape
    )
    node = helper.make_node(operator, order, ["y"], domain=domain, **attributes)
    weights = [numpy_helper.from_array(each, key) for key, each in arrays.items() if key != first]
    graph = helper.make_graph([node], "net", [info], [helper.make_empty_tensor_value_info("y")], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), {first: arrays[first]}


@pytest.mark.parametrize("name", CASES)
def test_results_are_at_most_a_step_beside_onnxruntimes(name: str) -> None:
    made, arrays = model(name)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = np.asarray(session.run(None, arrays)[0])
    graph = import_onnx(made)
    whole = {node.attrs.str("op_type") for node in graph.operators if node.op.name == "Onnx"}
    assert whole <= {"DequantizeLinear", "QuantizeLinear"}
    (found,) = gk.compile(graph)(*arrays.values())
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    apart = np.abs(found.astype(np.float64) - wanted)
    if wanted.dtype == np.float32:
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    else:
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= 0.03 * apart.size
