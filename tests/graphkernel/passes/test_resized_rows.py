"""Images that are resized between convolutions: kernels with channels last that compute what onnxruntime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.ops.library.host import ONNX
from tests.support.onnx_models import model, run_onnxruntime

pytestmark = pytest.mark.usefixtures("shared_kernels")

CHANNELS, SIDE = 32, 64
RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32)
WEIGHTS = (RANDOM.standard_normal((CHANNELS, CHANNELS, 3, 3)) / 16).astype(np.float32)
WAYS = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


def resized(amounts: np.ndarray, is_last: bool = False, opset: int = 17, **attributes: Any) -> ModelProto:
    """A convolution, Resize by sizes or scales, and a convolution of its result."""
    operands = ["a", "", "", "sizes"] if amounts.dtype == np.int64 else ["a", "", "sizes"]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Resize", operands, ["y" if is_last else "b"], **attributes),
        helper.make_node("Conv", ["b", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]
    return model(nodes[:2] if is_last else nodes, {"x": IMAGE}, constants={"w": WEIGHTS, "sizes": amounts}, opset=opset)


def sizes(height: int, width: int) -> np.ndarray:
    return np.array([1, CHANNELS, height, width], np.int64)


def agrees(made: ModelProto) -> gk.Executable:
    exe = gk.compile(import_onnx(made))
    (found,), (expected,) = exe(IMAGE), run_onnxruntime(made, {"x": IMAGE})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    return exe


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("extents", [(128, 128), (90, 140), (32, 96)])
def test_linear(extents: tuple[int, int], way: str) -> None:
    made = resized(sizes(*extents), mode="linear", coordinate_transformation_mode=way)
    assert not agrees(made).report.host


@pytest.mark.parametrize(
    ("extents", "way", "rounding"),
    [
        ((128, 192), "asymmetric", "floor"),
        ((128, 128), "half_pixel", "round_prefer_floor"),
        ((90, 140), "half_pixel", "ceil"),
        ((33, 65), "align_corners", "round_prefer_ceil"),
        ((64, 128), "pytorch_half_pixel", "floor"),
    ],
)
def test_nearest(extents: tuple[int, int], way: str, rounding: str) -> None:
    made = resized(sizes(*extents), mode="nearest", coordinate_transformation_mode=way, nearest_mode=rounding)
    assert not agrees(made).report.host


@pytest.mark.parametrize("scales", [(1.01, 2), (1, 1.99)])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_scales_say_where_pixels_lie_and_not_sizes(scales: tuple[float, float], mode: str) -> None:
    """1.01 times 64 rows are 64, and are none of them."""
    assert not agrees(resized(np.array([1, 1, *scales], np.float32), mode=mode)).report.host


def test_scales_and_axes() -> None:
    assert not agrees(resized(np.array([1, 1, 2, 1.5], np.float32), mode="linear")).report.host
    assert not agrees(resized(np.array([100, 70]), opset=18, axes=[2, 3], mode="linear", antialias=0)).report.host
    assert not agrees(resized(sizes(100, 70))).report.host


def test_whole_factors_repeat_pixels() -> None:
    """What is repeated is no gather, and is computed with what follows."""
    way: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    graph = gk.optimize(import_onnx(resized(sizes(2 * SIDE, 3 * SIDE), **way)))
    names = [node.op.name for kernel in graph.operators if kernel.body for node in kernel.body.operators]
    assert "BroadcastTo" in names
    assert "Gather" not in names


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (resized(sizes(90, 140), mode="cubic"), "four pixels of each row are mixed"),
        (resized(sizes(32, 32), mode="linear", antialias=1, opset=18), "as many as a window has"),
        (resized(np.array([2, CHANNELS, 128, 128]), mode="nearest"), "images are repeated too"),
        (resized(sizes(128, 128), is_last=True, mode="linear"), "the layout changes while the image is small"),
    ],
    ids=["cubic", "antialias", "two of one", "at the end"],
)
def test_others_are_onnxruntimes(made: ModelProto, why: str) -> None:
    assert [entry for entry in agrees(made).report.host if "Resize" in entry.operators], why


@pytest.mark.parametrize("mode", ["cubic", "linear", "nearest"])
def test_an_image_as_large_is_the_image(mode: str) -> None:
    for made in (resized(sizes(SIDE, SIDE), mode=mode), resized(np.ones(4, np.float32), mode=mode)):
        assert all(node.op is not ONNX for node in import_onnx(made).operators)
        agrees(made)


def test_what_crops_is_no_image_as_large() -> None:
    made = resized(sizes(SIDE, SIDE), mode="linear", coordinate_transformation_mode="tf_crop_and_resize")
    made.graph.node[1].input[1] = "part"
    made.graph.initializer.append(helper.make_tensor("part", 1, [8], [0, 0, 0.2, 0.2, 1, 1, 0.8, 0.8]))
    assert [entry for entry in agrees(made).report.host if "Resize" in entry.operators]
