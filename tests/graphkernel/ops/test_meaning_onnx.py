"""Meanings against an independent oracle: the reference evaluator of the onnx package."""

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from graphkernel import ops
from graphkernel.ops.library.host import attribute_values, attributes_from_json, attributes_to_json
from kernelgen.tensor.graph import Builder
from kernelgen.tensor.operators.nn import AVG_POOL, CONV2D, MAX_POOL
from kernelgen.tensor.types import Attrs

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def reference(op_type: str, *arrays: np.ndarray, result_types: tuple[str, ...] = ("f32[1]",), **attributes: object):
    """Runs an ONNX operator through our ``Onnx`` operator, which is thereby tested too."""
    made = [helper.make_attribute(name, value) for name, value in attributes.items()]
    attrs = Attrs.of(op_type=op_type, opset=18, attributes=attributes_to_json(made), result_types=result_types)
    return ops.OPS["Onnx"].meaning(*arrays, attrs=attrs)


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


X = normal(3, 4, 5)
UNARY = {
    "Abs": "abs", "Neg": "neg", "Exp": "exp", "Tanh": "tanh", "Erf": "erf", "Floor": "floor", "Ceil": "ceil", "Round": "round",
    "Sign": "sign", "Sigmoid": "sigmoid", "Relu": "relu", "Softplus": "softplus", "Softsign": "softsign", "Sin": "sin",
    "Cos": "cos", "Reciprocal": "reciprocal", "Atan": "atan", "Sinh": "sinh", "Asinh": "asinh", "HardSwish": "hswish",
}  # fmt: skip


@pytest.mark.parametrize("theirs", UNARY)
def test_unary(theirs):
    close(getattr(ops, UNARY[theirs])(X * 3), reference(theirs, X * 3))


def test_gelu_forms_and_layer_norm():
    exact = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in X.reshape(-1).tolist()]
    close(ops.gelu(X).reshape(-1), np.array(exact, np.float32))
    assert np.abs(ops.gelu(X, approximate="tanh") - ops.gelu(X)).max() < 1e-3
    assert not np.array_equal(ops.gelu(X, approximate="tanh"), ops.gelu(X))
    gamma, beta = normal(5), normal(5)
    y, mean, variance = ops.layer_norm(X, gamma, beta, epsilon=1e-5)
    close(y, reference("LayerNormalization", X, gamma, beta, axis=-1, epsilon=1e-5))
    close(mean, X.mean(-1, keepdims=True))
    close(variance, X.var(-1, keepdims=True))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis):
    close(ops.softmax(X, axis=axis), reference("Softmax", X, axis=axis))
    close(ops.log_softmax(X, axis=axis), reference("LogSoftmax", X, axis=axis))
    assert np.isfinite(ops.softmax(X * 1e4, axis=axis)).all()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_and_one_hot(axis):
    indices = np.array([[0, 2], [-1, 1]])
    close(ops.gather(X, indices, axis=axis), reference("Gather", X, indices, axis=axis))
    flags = np.array([0.0, 1.0], np.float32)
    close(
        ops.one_hot(indices % 3, 3, 1.0, 0.0, axis=axis),
        reference("OneHot", indices % 3, np.array(3), flags, axis=axis),
    )


def test_conv():
    x, weight = normal(2, 4, 7, 8), normal(6, 2, 3, 2)
    attrs = Attrs.of(stride=(2, 1), pad=(1, 2, 0, 1), dilation=(1, 2), group=2)
    theirs = reference("Conv", x, weight, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2], group=2)
    close(CONV2D.meaning(x, weight, attrs=attrs), theirs)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("size", [6, 7, 8])
def test_pools(ceil, size):
    x = normal(1, 2, size, size)
    attrs = Attrs.of(kernel_size=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1), ceil_mode=ceil)
    window: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": int(ceil)}
    close(MAX_POOL.meaning(x, attrs=attrs), reference("MaxPool", x, **window))
    close(AVG_POOL.meaning(x, attrs=attrs), reference("AveragePool", x, **window))
    included = AVG_POOL.meaning(x, attrs=attrs.with_(count_include_pad=True))
    if not ceil:  # onnx's own evaluator and onnxruntime disagree about the overhanging rim
        close(included, reference("AveragePool", x, **window, count_include_pad=1))


def test_batch_norm():
    x, (scale, bias, mean), variance = normal(2, 3, 4, 4), normal(3, 3), np.abs(normal(3)) + 0.1
    theirs = reference("BatchNormalization", x, scale, bias, mean, variance, epsilon=1e-3)
    close(ops.batch_norm(x, scale, bias, mean, variance, epsilon=1e-3), theirs)


def test_integer_division_and_remainders():
    x, y = np.array([7, -7, 7, -7, 6], np.int32), np.array([2, 2, -2, -2, 3], np.int32)
    assert ops.div(x, y).tolist() == [3, -3, -3, 3, 2]
    assert ops.floor_div(x, y).tolist() == [3, -4, -4, 3, 2]
    assert ops.mod(x, y).tolist() == [1, -1, 1, -1, 0]
    assert ops.floor_mod(x, y).tolist() == [1, 1, -1, -1, 0]
    np.testing.assert_array_equal(ops.mod(x, y), reference("Mod", x, y, fmod=1))
    np.testing.assert_array_equal(ops.floor_mod(x, y), reference("Mod", x, y))


def test_cumulative_sums():
    for exclusive in (False, True):
        for reverse in (False, True):
            ours = ops.cum_sum(X, 1, exclusive=exclusive, reverse=reverse)
            close(ours, reference("CumSum", X, np.array(1), exclusive=int(exclusive), reverse=int(reverse)))


def test_several_results_and_absent_operands_of_the_host_operator():
    parts = reference("Split", X, result_types=("f32[1, 4, 5]",) * 3, axis=0, num_outputs=3)
    assert [part.shape for part in parts] == [(1, 4, 5)] * 3
    attrs = Attrs.of(op_type="Clip", opset=18, result_types=("f32[3, 4, 5]",), present=(True, False, True))
    np.testing.assert_array_equal(ops.OPS["Onnx"].meaning(X, np.float32(0.5), attrs=attrs), np.minimum(X, 0.5))


def test_attributes_are_numbers_texts_and_tuples_by_their_names():
    given: dict[str, Any] = {"axis": 0, "mode": "linear", "pads": (1, 2), "cubic_coeff_a": -0.75, "names": ("a", "b")}
    made = attributes_to_json(helper.make_attribute(name, value) for name, value in given.items())
    of: dict[str, Any] = {"op_type": "Resize", "domain": "", "opset": 18, "result_types": ("f32[1]",)}
    builder = Builder()
    assert attribute_values(builder.emit(ops.OPS["Onnx"], attributes=made, **of).node) == given
    assert attribute_values(builder.emit(ops.OPS["Onnx"], attributes="[]", **of).node) == {}


def test_attributes_round_trip_as_text():
    made = [helper.make_attribute("b", [1, 2]), helper.make_attribute("a", onnx.numpy_helper.from_array(X))]
    text = attributes_to_json(made)
    assert attributes_to_json(attributes_from_json(text)) == text
    assert text.index('"a"') < text.index('"b"')
