"""Pooling by the text of the standard, element by element: padding, automatic padding, dilation, windows that hang over.

onnxruntime is not asked: with dilation and automatic padding it departs from the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model, run_onnxruntime

Array = np.ndarray[Any, Any]
CASES = 60


@dataclass(frozen=True)
class Axis:
    """Windows along one spatial axis."""

    extent: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    count: int

    @staticmethod
    def of(extent: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], auto: str, ceil: bool) -> Axis:
        span = dilation * (kernel - 1) + 1
        if auto.startswith("SAME"):
            count = -(-extent // stride)
            total = max(0, (count - 1) * stride + span - extent)
            less, more = total // 2, total - total // 2
            before, after = (less, more) if auto == "SAME_UPPER" else (more, less)
            return Axis(extent, kernel, stride, dilation, before, after, count)
        before, after = (0, 0) if auto == "VALID" else pads
        room = extent + before + after - span
        count = (-(-room // stride) if ceil else room // stride) + 1
        count -= ceil and (count - 1) * stride >= extent + before  # no window starts in the padding behind
        return Axis(extent, kernel, stride, dilation, before, after, count)

    def places(self, window: int) -> list[int]:
        """The places of a window; those of padding are outside of the extent."""
        return [window * self.stride - self.before + step * self.dilation for step in range(self.kernel)]

    def inside(self, place: int) -> bool:
        return 0 <= place < self.extent

    def padded(self, place: int) -> bool:
        return -self.before <= place < self.extent + self.after


def pooled(x: Array, rows: Axis, columns: Axis, mean: bool, include_padding: bool) -> Array:
    y = np.zeros((*x.shape[:2], rows.count, columns.count))
    for i, j in product(range(rows.count), range(columns.count)):
        window = list(product(rows.places(i), columns.places(j)))
        met = [x[:, :, r, c] for r, c in window if rows.inside(r) and columns.inside(c)]
        counted = sum(rows.padded(r) and columns.padded(c) for r, c in window) if include_padding else len(met)
        with np.errstate(all="ignore"):
            y[:, :, i, j] = np.sum(met, 0) / counted if mean else np.max(met, 0) if met else -np.inf
    return y


@pytest.mark.parametrize("row", [False, True], ids=["image", "row"])
@pytest.mark.parametrize("seed", range(CASES))
def test_pooling(seed: int, row: bool) -> None:
    random = Random(seed)
    mean, auto = seed % 2 == 1, random.choice(("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    kernel, stride = [random.randint(1, 3), random.randint(1, 3)], [random.randint(1, 3), random.randint(1, 3)]
    dilation, ceil = [random.randint(1, 2), random.randint(1, 2)], random.random() < 0.5
    pads, include = [random.randint(0, kernel[axis % 2] - 1) for axis in range(4)], random.random() < 0.5
    x = np.random.default_rng(seed).standard_normal((1, 2, random.randint(5, 8), random.randint(5, 8)))
    axes = [
        Axis.of(x.shape[2 + a], kernel[a], stride[a], dilation[a], (pads[a], pads[a + 2]), auto, ceil) for a in range(2)
    ]
    if row:
        x, axes[0], pads = x[:, :, :1], Axis(1, 1, 1, 1, 0, 0, 1), pads[1::2]
        kernel, stride, dilation = kernel[1:], stride[1:], dilation[1:]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": stride,
        "dilations": dilation,
        "ceil_mode": int(ceil),
    }
    attributes |= {"pads": pads} if auto == "NOTSET" else {"auto_pad": auto}
    attributes |= {"count_include_pad": int(include)} if mean else {}
    node = helper.make_node("AveragePool" if mean else "MaxPool", ["x"], ["y"], **attributes)
    wide = x.astype(np.float32)
    inputs = {"x": wide[:, :, 0] if row else wide}
    graph = import_onnx(model([node], inputs, opset=19))
    expected = pooled(wide.astype(np.float64), axes[0], axes[1], mean, include)
    expected = expected[:, :, 0] if row else expected
    for level in (0, 2):
        (found,) = gk.compile(graph, opt_level=level)(inputs["x"])
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [18, 19, 22])
@pytest.mark.parametrize("name", ["MaxPool", "AveragePool"])
def test_windows_that_hang_over_beside_an_operator_with_a_body(name: str, opset: int) -> None:
    nodes = [
        helper.make_node("CenterCropPad", ["c", "n"], ["z"], axes=[-2]),
        helper.make_node(name, ["x"], ["y"], kernel_shape=[3, 1], strides=[2, 2], ceil_mode=1),
    ]
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 4))
    c = np.ones((1, 5, 3), np.float16)
    graph = import_onnx(model(nodes, {"x": x, "c": c}, ("y", "z"), {"n": np.array([1])}, opset))
    for level in (0, 2):
        found, _ = gk.compile(graph, opt_level=level)(x, c)
        np.testing.assert_allclose(
            found, pooled(x, Axis(6, 3, 2, 1, 0, 0, 3), Axis(4, 1, 2, 1, 0, 0, 2), name != "MaxPool", False)
        )


def test_windows_that_onnxruntime_has_otherwise_are_its_own() -> None:
    x = np.ones((1, 2, 7), np.float32)
    automatic = {"auto_pad": "SAME_UPPER", "dilations": [2]}
    cube = {**automatic, "dilations": [2, 2, 2], "kernel_shape": [2, 2, 2]}
    over = {"ceil_mode": 1, "kernel_shape": [1], "strides": [4]}
    cases: list[tuple[str, Any, dict[str, Any], int]] = [
        ("MaxPool", x[..., :6], over, 2), ("MaxPool", x, automatic, 2), ("MaxPool", x.astype(np.int8), automatic, 1),
        ("MaxPool", np.ones((1, 1, 5, 5, 5), np.float32), cube, 1), ("LpPool", x, automatic, 1),
    ]  # fmt: skip
    for name, given, attributes, results in cases:
        node = helper.make_node(name, ["x"], ["y", "i"][:results], **{"kernel_shape": [3], **attributes})  # pyright: ignore[reportArgumentType]
        for shape in (given.shape, (*given.shape[:2], *"DHW"[: given.ndim - 2])):
            made = model([node], {"x": given}, ("y", "i")[:results], opset=19, shapes={"x": shape})
            wanted = run_onnxruntime(made, {"x": given})
            for found, expected in zip(gk.compile(import_onnx(made))(given), wanted, strict=True):
                np.testing.assert_array_equal(found, expected)
