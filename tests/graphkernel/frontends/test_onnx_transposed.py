"""Transposed convolutions of random windows, strides and paddings, along one axis and two, beside onnxruntime."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_INPUT
from graphkernel.ops.library.host import is_onnx
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.nn import CONV2D
from tests.support.onnx_models import model, run_onnxruntime


def _numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_onnxruntimes(seed: int) -> None:
    random, axes = Random(seed), 1 + seed % 2
    kernel, strides = ([random.randint(1, most) for _ in range(axes)] for most in (6, 4))
    pads = [random.randint(0, kernel[axis % axes] - 1) for axis in range(2 * axes)]
    more = [random.randint(0, step - 1) for step in strides]
    channels, results = random.choice(((16, 8), (24, 3), (5, 16)))
    constants = {
        "w": _numbers(1, channels, results, *kernel) / 4,
        "b": _numbers(2, results),
        "v": _numbers(3, 8, results, *[1] * axes),
    }
    window: dict[str, Any] = {"strides": strides, "pads": pads, "output_padding": more, "kernel_shape": kernel}
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("ConvTranspose", ["a", "w", *(["b"] if random.random() < 0.7 else [])], ["c"], **window),
        helper.make_node("Tanh", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "v"], ["y"]),
    ]
    x = _numbers(seed, 2, channels, *(random.randint(4, 20) for _ in range(axes)))
    made = model(nodes, {"x": x}, constants=constants)
    (expected,) = run_onnxruntime(made, {"x": x})
    for level in (0, 2):
        (found,) = gk.compile(import_onnx(made), level)(x)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def _imported(x: np.ndarray, weights: np.ndarray | None = None, shapes: Any = None, **window: Any) -> Graph:
    given = {"x": x} if weights is not None else {"x": x, "w": _numbers(1, 16, 16, 4)}
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2], **window)
    constants = {} if weights is None else {"w": weights}
    return import_onnx(model([node], given, constants=constants, shapes=shapes))


def test_phases_are_one_convolution_without_strides() -> None:
    x = _numbers(0, 1, 64, 500)
    exe = gk.compile(_imported(x, _numbers(1, 64, 32, 8), pads=[3, 3]))
    assert exe.report.host == ()
    optimized = gk.optimize(_imported(x, _numbers(1, 64, 32, 8), pads=[3, 3]))
    (convolution,) = [
        n for kernel in optimized.operators if kernel.body for n in kernel.body.operators if n.op is CONV2D
    ]
    assert convolution.args[1].type.shape == (1, 4, 64, 2 * 32)
    assert convolution.attrs.ints("stride", (1, 1)) == (1, 1)


@pytest.mark.parametrize(("side", "is_own"), [(4, False), (32, True)])
def test_images_of_few_elements_are_onnxruntimes_since_phases_begin_before_them(side: int, is_own: bool) -> None:
    x, w = _numbers(0, 1, 256, side, side), _numbers(1, 256, 128, 4, 4) / 32
    node = helper.make_node("ConvTranspose", ["x", "w"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1])
    made = model([node, helper.make_node("Relu", ["c"], ["y"])], {"x": x}, constants={"w": w})
    exe = gk.compile(import_onnx(made))
    assert not exe.report.host if is_own else ["onnxruntime" in str(step) for step in exe.report.host] == [True]
    np.testing.assert_allclose(exe(x)[0], run_onnxruntime(made, {"x": x})[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("weights", "window"),
    [(None, {}), (_numbers(1, 16, 8, 4), {"group": 2}), (_numbers(1, 16, 16, 4), {"dilations": [2]}),
     (_numbers(1, 16, 16, 4), {"auto_pad": "SAME_UPPER"}), (_numbers(1, 16, 16, 4), {"output_shape": [20]})],
)  # fmt: skip
def test_others_are_onnxruntimes(weights: np.ndarray | None, window: dict[str, Any]) -> None:
    graph = _imported(_numbers(0, 1, 16, 10), weights, **window)
    assert any(is_onnx(node, "ConvTranspose") for node in graph.operators)
    assert not any(node.op is CONV2D_BACKPROP_INPUT for node in graph.operators)


def test_open_extents_are_onnxruntimes() -> None:
    graph = _imported(_numbers(0, 1, 16, 10), _numbers(1, 16, 16, 4), {"x": ("N", 16, "T")})
    assert any(is_onnx(node, "ConvTranspose") for node in graph.operators)
