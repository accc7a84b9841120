"""Windows that reach far beyond their image: the sum of what each tap makes of the pixels that it sees."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.cluster import convolution_cost
from graphkernel.cluster.convolution_cost import OwnWays, Windows, own_ways, windows_of
from graphkernel.ops import Tensor
from graphkernel.passes.format.to_nhwc_format import to_nhwc_format
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import TensorType

CHANNELS, RESULTS = 256, 64


@pytest.fixture
def slow_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that takes for ever."""
    monkeypatch.setattr(convolution_cost, "LIBRARY_SHARES", dict.fromkeys(Windows, 1e-9))


def _network(
    sides: tuple[int, int], window: tuple[int, int], pad: tuple[int, ...], dilation: tuple[int, int]
) -> tuple[Graph, np.ndarray]:
    """A convolution between two points, with what follows one usually."""
    random = np.random.default_rng(sum(sides) + sum(pad))

    def drawn(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, np.float32) / np.float32(np.sqrt(np.prod(shape[1:])))

    def network(image: Tensor) -> Tensor:
        first = ops.relu(ops.conv2d(image, drawn(CHANNELS, 8, 1, 1)))
        wide = ops.conv2d(first, drawn(RESULTS, CHANNELS, *window), pad=pad, dilation=dilation)
        return ops.conv2d(ops.relu(wide + drawn(RESULTS, 1, 1)), drawn(8, RESULTS, 1, 1))

    image = random.standard_normal((2, 8, *sides), np.float32)
    return gk.trace(network, image), image


def _kernels(graph: Graph) -> list[Node]:
    """What its kernels hold."""
    return [node for kernel in graph.operators for node in (kernel.body.operators if kernel.body else (kernel,))]


@pytest.mark.usefixtures("slow_library")
@pytest.mark.parametrize(
    ("sides", "window", "pad", "dilation", "taps"),
    [
        ((14, 14), (3, 3), (12, 12, 12, 12), (12, 12), 9),
        ((14, 14), (3, 3), (24, 24, 24, 24), (24, 24), 1),  # all but the middle see nothing
        ((20, 33), (3, 3), (24, 24, 24, 24), (24, 24), 3),  # too far down, not across
        ((14, 9), (3, 1), (10, 10, 0, 0), (10, 1), 3),
        ((9, 14), (1, 5), (0, 0, 14, 18), (1, 8), 3),  # the first and the last see nothing
        ((11, 13), (3, 3), (20, 11, 13, 17), (10, 10), 9),  # the image lies off the middle
    ],
)
def test_each_tap_is_a_product_of_what_it_sees(
    sides: tuple[int, int], window: tuple[int, int], pad: tuple[int, ...], dilation: tuple[int, int], taps: int
) -> None:
    graph, image = _network(sides, window, pad, dilation)
    found = _kernels(gk.optimize(graph, 2))
    assert not any(node.op is CONV2D for node in found)
    assert sum(node.op is BATCH_MATMUL for node in found) == taps + 2
    executable = gk.compile(graph, 2)
    assert executable.report.host == ()
    (result,), (expected,) = executable(image), gk.evaluate(graph, [image])
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("side", "dilation", "by_taps"),
    [(14, 12, True), (33, 24, True), (65, 36, True), (65, 12, False), (65, 2, False), (14, 1, False)],
)
def test_it_pays_where_much_is_outside(side: int, dilation: int, by_taps: bool) -> None:
    """Of windows 12 pixels apart in 65 tiles have fewer multiplications."""
    graph, _ = _network((side, side), (3, 3), (dilation,) * 4, (dilation, dilation))
    (wide,) = (node for node in graph.operators if node.op is CONV2D and node.args[1].type.shape[2:] == (3, 3))
    assert _ways(wide).by_taps is by_taps


@pytest.mark.usefixtures("slow_library")
def test_no_multiplication_is_with_padding() -> None:
    """Of 14 x 14 results all see the middle, 2 rows or columns each of the others."""
    graph, _ = _network((14, 14), (3, 3), (12, 12, 12, 12), (12, 12))
    products = [node for node in _kernels(gk.optimize(graph, 2)) if node.op is BATCH_MATMUL]
    places = sorted(node.out.type.shape[1:3] for node in products if node.out.type.shape[-1] == RESULTS)
    assert places == [(2, 2)] * 4 + [(2, 14)] * 2 + [(14, 2)] * 2 + [(14, 14)]


@pytest.mark.usefixtures("slow_library")
def test_weights_of_a_tap_are_called_by_it_and_cannot_be_written() -> None:
    graph, _ = _network((14, 14), (3, 3), (12, 12, 12, 12), (12, 12))
    (wide,) = (node for node in graph.operators if node.op is CONV2D and node.args[1].type.shape[2:] == (3, 3))
    products = [node for node in to_nhwc_format(graph).operators if node.op is BATCH_MATMUL and wide.name in node.name]
    assert [node.name for node in products] == [
        f"{wide.name}_{row}_{column}" for row in range(3) for column in range(3)
    ]
    for node in products:
        assert node.attrs.bool(OWN_KERNEL, False)
        assert node.args[1].constant is not None
        assert not node.args[1].constant.flags.writeable


def _far(
    image: TensorType,
    weights: np.ndarray | TensorType,
    pad: tuple[int, ...] = (12,) * 4,
    dilation: int = 12,
    stride: tuple[int, int] = (1, 1),
    group: int = 1,
) -> Node:
    """A convolution of windows whose rows lie far apart, of weights that are known or an input."""
    far = (dilation, dilation)
    if isinstance(weights, np.ndarray):
        graph = gk.trace(lambda x: ops.conv2d(x, weights, pad=pad, dilation=far, stride=stride, group=group), image)
    else:
        graph = gk.trace(
            lambda x, w: ops.conv2d(x, w, pad=pad, dilation=far, stride=stride, group=group), image, weights
        )
    (found,) = (node for node in graph.operators if node.op is CONV2D)
    return found


def _ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


IMAGE = gk.spec((1, 64, 14, 14))


def _ways(node: Node) -> OwnWays:
    return own_ways(node, windows_of(node))


def test_others_are_no_sums_of_taps() -> None:
    """A tap is a product of what it sees, of constants, in steps of one, and one of them sees a pixel."""
    assert _ways(_far(IMAGE, _ones(64, 64, 3, 3))).by_taps
    others = {
        "weights that are not known": _far(IMAGE, gk.spec((64, 64, 3, 3))),
        "steps of two": _far(IMAGE, _ones(64, 64, 3, 3), stride=(2, 2)),
        "groups": _far(IMAGE, _ones(64, 32, 3, 3), group=2),
        "a filter for each channel": _far(IMAGE, _ones(64, 1, 3, 3), group=64),
        "rows of no known number": _far(gk.spec((1, 64, "H", 14)), _ones(64, 64, 3, 3)),
        "nothing outside": _far(gk.spec((1, 64, 38, 38)), _ones(64, 64, 3, 3), pad=(0, 0, 0, 0)),
        "nothing inside": _far(gk.spec((1, 64, 5, 5)), _ones(64, 64, 3, 3), pad=(15, 30, 15, 30), dilation=20),
    }
    assert {name: _ways(node).taps for name, node in others.items()} == dict.fromkeys(others, inf)
    assert not any(_ways(node).by_taps for node in others.values())
