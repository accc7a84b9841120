"""int8 models as onnxruntime's quantizer writes them load and agree with onnxruntime at every level and on every target."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model, run_onnxruntime
from onnxruntime import quantization

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx

pytestmark = pytest.mark.usefixtures("shared_kernels")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 8, 8)).astype(np.float32)
STEP = 1 / 255  # of the quantized probabilities: a number between two steps becomes either
KINDS = ("dynamic", "dynamic per channel", "QDQ", "QDQ per channel", "QOperator", "QOperator per channel")
LARGER_THAN_ROUNDING = 1.001
JOINED = 2 * STEP
"""onnxruntime computes in int8 what it joins: a number between two steps of the middle becomes either."""


def network(opset: int) -> onnx.ModelProto:
    """Convolution, two products with biases, a residual sum, softmax."""
    shapes = {"k": (4, 3, 3, 3), "w1": (144, 16), "b1": (16,), "w2": (16, 16), "b2": (16,)}
    weights = {name: (RNG.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}
    steps = (
        ("Conv", "x k", "a"), ("Relu", "a", "b"), ("Flatten", "b", "c"), ("MatMul", "c w1", "d"), ("Add", "d b1", "e"),
        ("Gemm", "e w2 b2", "f"), ("Sigmoid", "f", "g"), ("Add", "g e", "h"), ("Softmax", "h", "y"),
    )  # fmt: skip
    nodes = [helper.make_node(name, operands.split(), [result]) for name, operands, result in steps]
    made = model(nodes, {"x": X}, constants=weights, opset=opset)
    return onnx.shape_inference.infer_shapes(made)


class Calibration(quantization.CalibrationDataReader):
    """Two batches of random pictures."""

    def __init__(self) -> None:
        generator = np.random.default_rng(1)
        self.batches: Iterator[Mapping[str, np.ndarray]] = iter(
            [{"x": generator.standard_normal(X.shape).astype(np.float32)} for _ in range(2)]
        )

    def get_next(self) -> Any:  # the quantizer's own spelling
        return next(self.batches, None)


def quantized(kind: str, opset: int, folder: Path) -> Path:
    """The file of the network, quantized in one of the ways.

    Weights have seven bits: on processors without VNNI, onnxruntime adds pairs of products in 16 bits, which hold no more.
    """
    before, after = folder / "float.onnx", folder / "int8.onnx"
    onnx.save(network(opset), before)
    form, _, per_channel = kind.partition(" ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "dynamic":
            quantization.quantize_dynamic(before, after, per_channel=bool(per_channel))
        else:
            how = quantization.QuantFormat[form]
            quantization.quantize_static(
                before, after, Calibration(), quant_format=how, per_channel=bool(per_channel), reduce_range=True
            )
    return after


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("kind", KINDS)
def test_a_quantized_model_agrees_with_onnxruntime(kind: str, opset: int, tmp_path: Path) -> None:
    path = quantized(kind, opset, tmp_path)
    (want,) = run_onnxruntime(onnx.load(path), {"x": X})
    graph = gk.load(path)
    for level in range(4):
        (alone,) = gk.compile(graph, opt_level=level, host="numpy")(X)  # operator by operator
        assert np.abs(alone - want).max() <= STEP * LARGER_THAN_ROUNDING
        (got,) = gk.compile(graph, opt_level=level)(X)
        assert np.abs(got - want).max() <= JOINED
    for target in ("gpu", "ascend"):
        (got,) = gk.evaluate(gk.optimize(graph, 3, target), [X])
        assert np.abs(got - want).max() <= STEP * LARGER_THAN_ROUNDING


@pytest.mark.parametrize(
    ("name", "operands", "attributes"),
    [
        ("SkipLayerNormalization", [(2, 4, 8), (2, 4, 8), (8,)], {}),
        ("FusedMatMul", [(2, 4, 8), (2, 5, 8)], {"transB": 1, "alpha": 0.5}),
        ("BiasGelu", [(2, 4, 8), (8,)], {}),
        ("QuickGelu", [(2, 4, 8)], {}),
    ],
)
def test_operators_that_only_onnxruntime_knows_run_there(
    name: str, operands: list[tuple[int, ...]], attributes: dict[str, Any]
) -> None:
    arrays = {f"x{i}": RNG.standard_normal(shape).astype(np.float32) for i, shape in enumerate(operands)}
    node = helper.make_node(name, [*arrays], ["t"], domain="com.microsoft", **attributes)
    shapes = {"x0": ("N", *operands[0][1:])} if name != "FusedMatMul" else None
    given = model([node, helper.make_node("Relu", ["t"], ["y"])], arrays, shapes=shapes)
    given.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    (want,) = run_onnxruntime(given, arrays)
    graph = import_onnx(given)
    for level in (0, 2):
        (got,) = gk.compile(graph, opt_level=level)(*arrays.values())
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
