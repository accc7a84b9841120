"""Image networks with channels last: the same numbers, layouts that change at borders only, and a reason for each region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphkernel
from graphkernel import ops
from graphkernel.cluster import convolution_cost
from graphkernel.cluster.convolution_cost import Windows
from graphkernel.decisions import DecisionLog
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.shape import TRANSPOSE

IMAGE = np.random.default_rng(0).standard_normal((2, 8, 12, 10), np.float32)

Layer = Callable[[np.random.Generator, Tensor], Tensor]


@pytest.fixture
def fast_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of ours that cost nothing."""
    monkeypatch.setattr(convolution_cost, "OWN_SHARES", dict.fromkeys(Windows, 1e9))


def _drawn(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.standard_normal(shape, np.float32) * np.float32(0.5)


def _channels(x: Tensor) -> int:
    return int(str(x.shape[1]))


def _point(random: np.random.Generator, x: Tensor) -> Tensor:
    return ops.conv2d(x, _drawn(random, int(random.choice([4, 8, 16])), _channels(x), 1, 1))


def _strided_point(random: np.random.Generator, x: Tensor) -> Tensor:
    return ops.conv2d(x, _drawn(random, 8, _channels(x), 1, 1), stride=(2, 2)) if _is_wide(x) else x


def _is_wide(x: Tensor) -> bool:
    return all(isinstance(dim, int) and dim >= 5 for dim in x.shape[2:])


def _dense(random: np.random.Generator, x: Tensor) -> Tensor:
    stride = int(random.choice([1, 2])) if _is_wide(x) else 1
    return ops.conv2d(x, _drawn(random, 8, _channels(x), 3, 3), stride=(stride, stride), pad=(1, 1, 1, 1))


def _patch(random: np.random.Generator, x: Tensor) -> Tensor:
    even = all(isinstance(dim, int) and dim % 2 == 0 for dim in x.shape[2:])
    return ops.conv2d(x, _drawn(random, 12, _channels(x), 2, 2), stride=(2, 2)) if even else x


def _plane(random: np.random.Generator, x: Tensor) -> Tensor:
    group = _channels(x)
    return ops.conv2d(x, _drawn(random, group, 1, 5, 3), pad=(2, 2, 1, 1), group=group)


def _grouped(random: np.random.Generator, x: Tensor) -> Tensor:
    return ops.conv2d(x, _drawn(random, 8, _channels(x) // 2, 3, 3), pad=(1, 1, 1, 1), group=2)


def _bias(random: np.random.Generator, x: Tensor) -> Tensor:
    shape = (_channels(x), 1, 1) if random.random() < 0.5 else (1, _channels(x), 1, 1)
    return ops.relu(x + _drawn(random, *shape))


def _residual(random: np.random.Generator, x: Tensor) -> Tensor:
    return x + _bias(random, _dense_same(random, x))


def _dense_same(random: np.random.Generator, x: Tensor) -> Tensor:
    return ops.conv2d(x, _drawn(random, _channels(x), _channels(x), 3, 3), pad=(1, 1, 1, 1))


def _excited(random: np.random.Generator, x: Tensor) -> Tensor:
    squeezed = ops.reduce_mean(x, (2, 3), keep_dims=True)
    inner = ops.relu(ops.conv2d(squeezed, _drawn(random, 4, _channels(x), 1, 1)))
    return x * ops.sigmoid(ops.conv2d(inner, _drawn(random, _channels(x), 4, 1, 1)))


def _joined(random: np.random.Generator, x: Tensor) -> Tensor:
    return ops.concat([x, _dense_same(random, x)], axis=1)


def _halves(random: np.random.Generator, x: Tensor) -> Tensor:
    half = _channels(x) // 2
    first, second = ops.split(x, 2, axis=1)
    return ops.concat([ops.conv2d(second, _drawn(random, half, half, 1, 1)), first], axis=1)


def _shuffled(random: np.random.Generator, x: Tensor) -> Tensor:
    count, channels, height, width = x.shape
    parts = ops.reshape(x, (count, 2, _channels(x) // 2, height, width))
    return ops.reshape(ops.transpose(parts, (0, 2, 1, 3, 4)), (count, channels, height, width))


def _greatest(random: np.random.Generator, x: Tensor) -> Tensor:
    ceil = bool(random.random() < 0.5)
    return ops.max_pool(x, (3, 3), stride=(2, 2), pad=(1, 1, 1, 1), ceil_mode=ceil) if _is_wide(x) else x


def _mean(random: np.random.Generator, x: Tensor) -> Tensor:
    ceil, counted = bool(random.random() < 0.5), bool(random.random() < 0.5)
    pad = (1, 0, 1, 1)
    return (
        ops.avg_pool(x, (3, 2), stride=(2, 1), pad=pad, ceil_mode=ceil, count_include_pad=counted) if _is_wide(x) else x
    )


def _normalized(random: np.random.Generator, x: Tensor) -> Tensor:
    last = ops.transpose(x, (0, 2, 3, 1))
    centred = last - ops.reduce_mean(last, (3,), keep_dims=True)
    return ops.transpose(centred, (0, 3, 1, 2))


def _channel_sums(random: np.random.Generator, x: Tensor) -> Tensor:
    return x / (1 + ops.reduce_max(ops.abs(x), (1,), keep_dims=True))


LAYERS: tuple[Layer, ...] = (
    _point, _strided_point, _dense, _patch, _plane, _grouped, _bias, _residual, _excited, _joined, _halves, _shuffled,
    _greatest, _mean, _normalized, _channel_sums,
)  # fmt: skip

ENDS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x,
    lambda x: ops.reduce_mean(x, (2, 3)),
    lambda x: ops.reshape(ops.reduce_mean(x, (2, 3), keep_dims=True), (2, -1)),
    lambda x: ops.reshape(x, (2, -1)),
    lambda x: ops.transpose(x, (3, 1, 0, 2)),
    lambda x: ops.reduce_sum(x, (1,)),
    lambda x: ops.reduce_max(x, (2,)),
)


def _network(seed: int) -> Graph:
    random = np.random.default_rng(seed)
    layers = [LAYERS[int(number)] for number in random.choice(len(LAYERS), 5)]

    def network(x: Tensor) -> Tensor:
        x = _point(random, x)
        for layer in layers:
            x = layer(random, x)
        return ENDS[seed % len(ENDS)](x)

    return graphkernel.trace(network, IMAGE)


def _before_and_after(graph: Graph) -> tuple[Graph, Graph]:
    """The graph as the pass meets it, and as it leaves it."""
    seen: dict[str, tuple[Graph, Graph]] = {}
    graphkernel.optimize(graph, hooks=[lambda step, *graphs: seen.update({step.pass_.name: graphs})])
    return seen["to_nhwc_format"]


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("seed", range(70))
def test_networks_of_image_operators_in_any_order_mean_the_same(seed: int) -> None:
    before, after = _before_and_after(_network(seed))
    assert {node.attrs.get("format") for node in after.operators if node.op is CONV2D} <= {"NHWC"}
    (expected,), (found,) = (graphkernel.compile(each, 0, host="numpy")(IMAGE) for each in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize("seed", range(4))
def test_such_networks_are_kernels(seed: int) -> None:
    graph = _network(seed)
    exe = graphkernel.compile(graph)
    assert exe.report.host == ()
    (expected,) = graphkernel.compile(graph, 0, host="numpy")(IMAGE)
    np.testing.assert_allclose(exe(IMAGE)[0], expected, rtol=1e-3, atol=1e-4)


WEIGHTS, BIAS = np.ones((16, 8, 1, 1), np.float32), np.ones((16, 1, 1), np.float32)


def _lines(graph: Graph) -> list[str]:
    """The text of its operators."""
    return [line.strip() for line in str(graph).splitlines() if " = " in line and "const " not in line]


@pytest.mark.usefixtures("fast_kernels")
def test_a_region_before_and_after() -> None:
    def network(x: Tensor) -> Tensor:
        y = ops.relu(ops.conv2d(x, WEIGHTS) + BIAS)
        y = ops.conv2d(y, np.ones((16, 1, 3, 3), np.float32), pad=(1, 1, 1, 1), group=16)
        return ops.reshape(ops.reduce_sum(ops.max_pool(y, (2, 2), stride=(2, 2)), (2, 3), keep_dims=True), (2, 16))

    before, after = _before_and_after(graphkernel.trace(network, IMAGE))
    assert _lines(before) == [
        "t0: f32[2, 16, 12, 10] = Conv2D(x, c0, dilation=(1, 1), group=1, pad=(0, 0, 0, 0), stride=(1, 1))",
        "t1: f32[2, 16, 12, 10] = Add(t0, c1)",
        "t2.0: f32[2, 16, 12, 10] = Maximum(t1, 0.0)",
        "t3: f32[2, 16, 12, 10] = Conv2D(t2.0, c2, dilation=(1, 1), group=16, pad=(1, 1, 1, 1), stride=(1, 1))",
        "t4: f32[2, 16, 6, 5] = MaxPool(t3, ceil_mode=False, kernel_size=(2, 2), pad=(0, 0, 0, 0), stride=(2, 2))",
        "t5: f32[2, 16, 1, 1] = ReduceSum(t4, axis=(2, 3), keep_dims=True)",
        "t6: f32[2, 16] = Reshape(t5, shape=(2, 16))",
    ]
    assert _lines(after) == [
        "t0: f32[2, 12, 10, 8] = Transpose(x, perm=(0, 2, 3, 1))",
        "t0_1: f32[2, 12, 10, 16] = BatchMatMul(t0, c0, own_kernel=True, transpose_a=False, transpose_b=False)",
        "t1: f32[2, 12, 10, 16] = Add(t0_1, c1)",
        "t2.0: f32[2, 12, 10, 16] = Maximum(t1, 0.0)",
        't3: f32[2, 12, 10, 16] = Conv2D(t2.0, c2, dilation=(1, 1), format="NHWC", group=16, own_kernel=True, '
        "pad=(1, 1, 1, 1), stride=(1, 1))",
        't4: f32[2, 6, 5, 16] = Pool2D(t3, data_layout="NHWC", kernel_size=(2, 2), own_kernel=True, pad=(0, 0, 0, 0), '
        'pool_type="max", strides=(2, 2))',
        "t5: f32[2, 1, 1, 16] = ReduceSum(t4, axis=(1, 2), keep_dims=True)",
        "t6: f32[2, 16] = Reshape(t5, shape=(2, 16))",
    ]


@pytest.mark.usefixtures("fast_kernels")
def test_transposes_that_a_network_has_already_are_its_borders() -> None:
    def network(x: Tensor) -> Tensor:
        last = ops.transpose(ops.conv2d(x, np.ones((8, 1, 3, 3), np.float32), pad=(1, 1, 1, 1), group=8), (0, 2, 3, 1))
        return x + ops.transpose(ops.exp(last), (0, 3, 1, 2))

    def block(x: Tensor) -> Tensor:
        return ops.transpose(network(network(ops.transpose(x, (0, 3, 1, 2)))), (0, 2, 3, 1))

    _, after = _before_and_after(graphkernel.trace(block, np.transpose(IMAGE, (0, 2, 3, 1))))
    assert TRANSPOSE not in {node.op for node in after.operators}


def _decisions(graph: Graph) -> list[str]:
    log = DecisionLog()
    graphkernel.optimize(graph, log=log)
    return [decision.code for decision in log if decision.pass_name == "to_nhwc_format"]


@pytest.mark.usefixtures("fast_kernels")
def test_what_has_channels_last_already_stays_as_it_is() -> None:
    def network(x: Tensor) -> Tensor:
        y = ops.conv2d(x, np.ones((3, 3, 10, 4), np.float32), pad=(1, 1, 1, 1), format="NHWC")
        return ops.max_pool(y, (2, 2), stride=(2, 2), format="NHWC")

    before, after = _before_and_after(graphkernel.trace(network, IMAGE))
    assert after is before


@pytest.mark.usefixtures("fast_kernels")
def test_an_image_that_is_a_constant_is_read_as_it_is() -> None:
    weights = np.random.default_rng(1).standard_normal((8, 8, 3, 3), np.float32)

    def network(w: Tensor) -> Tensor:
        read = ops.conv2d(IMAGE, w, pad=(1, 1, 1, 1))
        return ops.relu(ops.conv2d(read, np.ones((8, 8, 1, 1), np.float32)))

    before, after = _before_and_after(graphkernel.trace(network, weights))
    (expected,), (found,) = (graphkernel.compile(each, 0, host="numpy")(weights) for each in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_region_of_points_alone_has_kernels_that_are_fast_enough() -> None:
    image = np.ones((1, 256, 28, 28), np.float32)

    def network(x: Tensor) -> Tensor:
        for _ in range(4):
            x = ops.relu(ops.conv2d(x, np.ones((256, 256, 1, 1), np.float32)))
        return x

    assert _decisions(graphkernel.trace(network, image)) == ["own-convolution"]
    narrow = np.ones((1, 256, 1, 1), np.float32)
    assert _decisions(graphkernel.trace(lambda x: ops.conv2d(x, narrow), image)) == ["not-own-convolution"]


@pytest.mark.parametrize(
    ("channels", "height", "chosen"),
    [(256, 14, "own-convolution"), (256, "h", "not-own-convolution"), (64, "h", "own-convolution")],
)
def test_large_weights_are_left_to_a_library_where_extents_are_open(
    channels: int, height: int | str, chosen: str
) -> None:
    def network(x: Tensor) -> Tensor:
        for _ in range(4):
            x = ops.relu(ops.conv2d(x, np.ones((channels, channels, 3, 3), np.float32), 1, 1))
        return x

    assert _decisions(graphkernel.trace(network, graphkernel.spec((1, channels, height, 14)))) == [chosen]


@pytest.mark.parametrize(("width", "chosen"), [(28, "own-convolution"), ("w", "not-own-convolution")])
def test_planes_are_left_to_a_library_where_rows_have_no_known_length(width: int | str, chosen: str) -> None:
    def network(x: Tensor) -> Tensor:
        for _ in range(4):
            x = ops.relu(ops.conv2d(x, np.ones((256, 256, 1, 1), np.float32)))
            x = ops.relu(ops.conv2d(x, np.ones((256, 1, 5, 5), np.float32), 1, 2, 1, 256))
        return x

    assert _decisions(graphkernel.trace(network, graphkernel.spec((1, 256, 28, width)))) == [chosen]


@pytest.mark.parametrize(("dilation", "chosen"), [(1, "own-convolution"), (12, "not-own-convolution")])
def test_a_library_leaves_out_what_windows_have_outside_of_the_image(dilation: int, chosen: str) -> None:
    weights = np.ones((256, 256, 3, 3), np.float32)

    def network(x: Tensor) -> Tensor:
        for _ in range(4):
            x = ops.relu(ops.conv2d(x, weights, pad=dilation, dilation=dilation))
        return x

    assert _decisions(graphkernel.trace(network, np.ones((1, 256, 28, 28), np.float32))) == [chosen]


@pytest.mark.parametrize(("groups", "chosen"), [(32, "own-convolution"), (16, "not-own-convolution")])
def test_a_library_computes_narrow_groups_one_by_one(groups: int, chosen: str) -> None:
    """Of 4 channels and of 8: one convolution is worth two changes of layout only where a library is slow."""
    weights = np.ones((128, 128 // groups, 3, 3), np.float32)
    image = np.ones((1, 128, 56, 56), np.float32)
    assert _decisions(graphkernel.trace(lambda x: ops.conv2d(x, weights, pad=1, group=groups), image)) == [chosen]


@pytest.mark.usefixtures("fast_kernels")
def test_flags_leave_a_convolution_to_a_library() -> None:
    weights = np.ones((16, 8, 1, 1), np.float32)
    constant = graphkernel.trace(lambda x: ops.conv2d(x, weights), IMAGE)
    left = graphkernel.optimize(constant, flags="--disable_cluster_ops=Conv2D")
    assert any(node.op is CONV2D for node in left.operators)
    made = graphkernel.optimize(constant)
    assert BATCH_MATMUL in {
        node.op for node in made.operators for node in (node.body.operators if node.body else (node,))
    }


WINDOWS = (
    (1, {}), (3, {}), (3, {"pad": 1}), (3, {"pad": (2, 0, 1, 2)}), (3, {"pad": 2, "dilation": 2}), (5, {"pad": (4, 4, 4, 4)}),
    (3, {"pad": 1, "stride": 2}), (2, {"stride": 2}), (1, {"stride": 2}), (3, {"stride": (2, 1), "dilation": (1, 2)}),
    (2, {"pad": 3}), (3, {"pad": 1, "group": 2}),
)  # fmt: skip
"""Sizes and attributes of windows."""


def _trained(size: int, window: dict[str, Any], count: int = 6) -> Graph:
    """A convolution between others, with its gradients by image and weights."""

    def loss(x: Tensor, weights: Tensor, shift: Tensor) -> Tensor:
        y = ops.conv2d(ops.tanh(x), weights, **window) + shift
        return ops.reduce_sum(y * ops.sigmoid(y))

    inner = IMAGE.shape[1] // int(window.get("group", 1))
    return graphkernel.trace(
        graphkernel.value_and_grad(loss, argnums=(0, 1, 2)), IMAGE, np.ones((count, inner, size, size), np.float32),
        np.ones((count, 1, 1), np.float32),
    )  # fmt: skip


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize(("size", "window"), WINDOWS)
def test_convolutions_that_are_trained_and_their_gradients_mean_the_same(size: int, window: dict[str, Any]) -> None:
    graph = _trained(size, window)
    before, after = _before_and_after(graph)
    if "group" not in window:
        assert after is not before
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(value.type.shape, np.float32) for value in graph.inputs]  # pyright: ignore[reportCallIssue, reportArgumentType]  # known extents
    expected, found = (graphkernel.evaluate(each, arrays) for each in (before, after))
    for one, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("fast_kernels")
@pytest.mark.parametrize(("size", "window"), [(1, {}), (3, {"pad": 1}), (2, {"pad": 2, "dilation": 2})])
def test_such_a_step_is_kernels_and_its_weights_keep_their_order(size: int, window: dict[str, Any]) -> None:
    graph = _trained(size, window, count=40)
    exe = graphkernel.compile(graph)
    assert exe.report.host == ()
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(value.type.shape, np.float32) for value in graph.inputs]  # pyright: ignore[reportCallIssue, reportArgumentType]  # known extents
    for one, right in zip(exe(*arrays), graphkernel.evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-3, atol=1e-3)
