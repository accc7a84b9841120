"""Networks over images of open sizes: numbers of onnxruntime at odd sizes and single pixels, in kernels of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.cluster import convolution_cost
from graphkernel.cluster.convolution_cost import Windows
from graphkernel.frontends.onnx.importer import import_onnx
from kernelgen.tensor.operators.nn import CONV2D

pytestmark = pytest.mark.usefixtures("shared_kernels")

CHANNELS = 24
SIZES = ((1, 1, 1), (1, 2, 3), (2, 7, 5), (1, 33, 17), (3, 16, 40), (1, 64, 51))
CONVOLUTIONS: dict[str, tuple[int, int, int, int]] = {
    "points": (1, 1, 1, 0), "strided points": (1, 1, 2, 0), "dense": (1, 3, 1, 1), "strided dense": (1, 3, 2, 1),
    "wide": (1, 5, 2, 2), "planes": (CHANNELS, 3, 1, 1), "strided planes": (CHANNELS, 3, 2, 1),
    "wide planes": (CHANNELS, 5, 2, 2), "groups": (6, 3, 1, 1), "strided groups": (6, 3, 2, 1),
}  # fmt: skip
"""Groups, the side of a window, its stride, and the padding."""

POOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "greatest": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "greatest that hangs over": (
        "MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    ),
    "greatest of all places": ("MaxPool", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]}),
    "mean": ("AveragePool", {"kernel_shape": [1, 1], "strides": [2, 2]}),
}  # fmt: skip


@pytest.fixture
def fast_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of ours that cost nothing."""
    monkeypatch.setattr(convolution_cost, "OWN_SHARES", dict.fromkeys(Windows, 1e9))
    monkeypatch.setattr(convolution_cost, "OPEN_PLANES", 1e9)


def network(*layers: onnx.NodeProto, weights: dict[str, np.ndarray], dims: tuple[str | int, ...]) -> onnx.ModelProto:
    """Layers on ``x`` that end in ``y``."""
    graph = helper.make_graph(
        list(layers), "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def convolved(
    kind: str, first: int = CHANNELS, dims: tuple[str | int, ...] = ("n", CHANNELS, "h", "w")
) -> onnx.ModelProto:
    """A convolution with a bias and an activation, of points of ``first`` channels in front, and points behind it."""
    group, side, stride, pad = CONVOLUTIONS[kind]
    draw = np.random.default_rng(0).standard_normal
    weights = {
        "w": draw((CHANNELS, first, 1, 1)), "v": draw((CHANNELS, CHANNELS // group, side, side)), "b": draw(CHANNELS),
        "u": draw((8, CHANNELS, 1, 1)),
    }  # fmt: skip
    window: dict[str, Any] = {"strides": [stride] * 2, "pads": [pad] * 4, "group": group}
    layers = (
        helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Conv", ["c", "v", "b"], ["d"], **window),
        helper.make_node("Relu", ["d"], ["e"]), helper.make_node("Conv", ["e", "u"], ["y"]),
    )  # fmt: skip
    return network(*layers, weights=weights, dims=dims)


def agrees(model: onnx.ModelProto, *shapes: tuple[int, ...]) -> gk.Executable:
    """The executable, whose results at all shapes are those of onnxruntime."""
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = gk.compile(import_onnx(model))
    for shape in shapes:
        x = np.random.default_rng(1).standard_normal(shape, np.float32)
        (found,), (wanted,) = exe(x), session.run(None, {"x": x})
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(wanted).max())))
    return exe


def of_channels(count: int) -> list[tuple[int, ...]]:
    return [(batch, count, height, width) for batch, height, width in SIZES]


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions_of_open_images_are_kernels(kind: str) -> None:
    assert agrees(convolved(kind), *of_channels(CHANNELS)).report.host == ()


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("kind", POOLS)
def test_pools_of_open_images_are_kernels(kind: str) -> None:
    operator, window = POOLS[kind]
    layers = (
        helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node(operator, ["c"], ["d"], **window),
        helper.make_node("Conv", ["d", "w"], ["y"]),
    )  # fmt: skip
    weights = {"w": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 1, 1))}
    model = network(*layers, weights=weights, dims=("n", CHANNELS, "h", "w"))
    assert agrees(model, *of_channels(CHANNELS)).report.host == ()


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("side", [2, 3])
@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
def test_a_window_longer_than_the_image_by_less_than_a_stride_has_a_place(operator: str, side: int) -> None:
    layers = (
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node(operator, ["c"], ["d"], kernel_shape=[3, side], strides=[3, side]),
        helper.make_node("Conv", ["d", "w"], ["y"]),
    )
    weights = {"w": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 1, 1))}
    model = network(*layers, weights=weights, dims=("n", CHANNELS, "h", "w"))
    sizes = ((height, width) for height in range(1, 7) for width in range(1, 5))
    assert agrees(model, *((2, CHANNELS, *size) for size in sizes)).report.host == ()


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_with_the_library_they_mean_the_same(kind: str) -> None:
    model = convolved(kind)
    graph = import_onnx(model)
    exe = gk.compile(graph, flags="--disable_cluster_ops=Conv2D")
    for shape in of_channels(CHANNELS):
        x = np.random.default_rng(1).standard_normal(shape, np.float32)
        (found,), (wanted,) = exe(x), gk.compile(graph, 0, host="numpy")(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("stride", [1, 2])
def test_pictures_of_three_channels_are_read_where_they_lie(stride: int) -> None:
    draw = np.random.default_rng(0).standard_normal
    layer = helper.make_node("Conv", ["x", "w", "b"], ["y"], strides=[stride] * 2, pads=[1, 1, 1, 1])
    weights = {"w": draw((16, 3, 3, 3)), "b": draw(16)}
    exe = agrees(network(layer, weights=weights, dims=("n", 3, "h", "w")), *of_channels(3))
    assert exe.report.host == ()


def test_how_many_windows_there_are_is_said_where_strides_over_symbols_do_not() -> None:
    graph = import_onnx(convolved("strided dense"))
    places = [node.attrs.dims("places", ()) for node in graph.operators if node.op is CONV2D]
    assert [tuple(map(str, each)) for each in places] == [(), ("u0", "u1"), ()]
    assert [str(each) for each in graph.derived] == ["u0 = floor_div(h + 1, 2)", "u1 = floor_div(w + 1, 2)"]
    known = import_onnx(convolved("strided dense", dims=("n", CHANNELS, 9, 8)))
    assert all("places" not in node.attrs for node in known.operators)
