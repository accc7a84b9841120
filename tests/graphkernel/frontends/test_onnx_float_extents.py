"""Extents that go through floats are derived where that is exact; where it is not, they are known at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model, run_onnxruntime

pytestmark = pytest.mark.usefixtures("shared_kernels")

SIZES = ((1, 2, 10, 13), (2, 2, 7, 8), (1, 2, 9, 9))


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(" "), [output], **attributes)


def images(sizes: Sequence[tuple[int, ...]] = SIZES) -> list[np.ndarray[Any, Any]]:
    return [np.random.default_rng(0).standard_normal(size).astype(np.float32) for size in sizes]


def resized(operator: str, by: float, rounding: str, of: int = TensorProto.FLOAT) -> ModelProto:
    """An image resized by a factor, with operators that fuse around it."""
    nodes = [
        node("Exp", "x", "e"), node("Shape", "e", "s"), node("Slice", "s two four", "hw"), node("Slice", "s zero two", "nc"),
        node("Cast", "hw", "f", to=of), node(operator, "f by", "g"), node(rounding, "g", "h"),
        node("Cast", "h", "i", to=TensorProto.INT64), node("Concat", "nc i", "z", axis=0),
        node("Resize", "e   z", "r", mode="nearest"), node("Tanh", "r", "t"), node("Neg", "t", "y"),
    ]  # fmt: skip
    number = np.array(by, np.float32 if of == TensorProto.FLOAT else np.float64)
    constants = {"two": np.array([2]), "four": np.array([4]), "zero": np.array([0]), "by": number}
    return model(nodes, {"x": images()[0]}, ("y",), constants, shapes={"x": ("N", 2, "H", "W")})


def defined(made: ModelProto) -> list[str]:
    """The operators that define extents, and what follows from these of the inputs."""
    graph = import_onnx(made)
    for image in images():
        (expected,) = run_onnxruntime(made, {"x": image})
        np.testing.assert_allclose(gk.compile(graph)(image)[0], expected, rtol=1e-5, atol=1e-6)
    return [each.attrs.str("op_type") for each in graph.operators if each.attrs.get("defines")]


@pytest.mark.parametrize("rounding", ["Floor", "Ceil", "Identity"])
@pytest.mark.parametrize(
    ("operator", "by"), [("Mul", 0.5), ("Mul", 2), ("Mul", 1.25), ("Mul", 0.75), ("Div", 2), ("Div", 0.5)]
)
def test_few_bits_are_followed(operator: str, by: float, rounding: str) -> None:
    assert defined(resized(operator, by, rounding)) == []


def test_double_precision_is_followed() -> None:
    assert defined(resized("Mul", 0.5, "Floor", TensorProto.DOUBLE)) == []


@pytest.mark.parametrize(("operator", "by"), [("Mul", 0.3), ("Div", 3), ("Mul", 1.1)])
@pytest.mark.parametrize("rounding", ["Floor", "Ceil", "Identity"])
def test_other_factors_wait_for_the_run(operator: str, by: float, rounding: str) -> None:
    assert defined(resized(operator, by, rounding)) != []


def test_half_of_the_height_is_the_same_whatever_computes_it() -> None:
    floats = import_onnx(resized("Mul", 0.5, "Floor"))
    assert [str(each).split(" = ")[1] for each in floats.derived] == ["floor_div(H, 2)", "floor_div(W, 2)"]
