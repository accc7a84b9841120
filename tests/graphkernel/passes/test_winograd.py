"""Convolutions by tiles: numbers within the bound of their own roundings, in kernels with whatever stood beside them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import graphkernel
import kernelgen
from graphkernel import ops
from graphkernel.cluster import convolution_cost
from graphkernel.cluster.convolution_cost import Windows, gradient_cost, tiles_cost
from graphkernel.cluster.fuse_nodes import call_of, with_unique_labels
from graphkernel.handoff import to_desc
from graphkernel.ops import Tensor
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_FILTER
from graphkernel.passes.base import Context
from graphkernel.passes.format import winograd
from graphkernel.passes.format.tiles import IMAGE_ROWS, RESULT_ROWS, RESULTS, SIDE, WEIGHT_ROWS, WINDOW
from kernelgen.nest.nodes import Space
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.operators.elemwise import ADD
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.pieces import SPLIT, STRIDED_SLICE
from kernelgen.tensor.types import TensorType, dtype

pytestmark = pytest.mark.usefixtures("shared_kernels")

Network = Callable[[Tensor], Tensor]

ROUNDING = 2.0**-24


FREE: Mapping[str, object] = {
    "OWN_SHARES": dict.fromkeys(Windows, 1e9),
    "CACHED_BYTES_PER_CYCLE": 1e12,
    "BYTES_PER_CYCLE": 1e30,
    "CALL_OF_KERNEL": 0.0,
    "TILE_TERMS": 1,
}
NEAR: Mapping[str, object] = {"NEAR_BYTES_PER_CYCLE": 1e12, "ROW_OF_PLACE": 0.0}
COSTS = {name: getattr(convolution_cost, name) for name in {**FREE, **NEAR}}


@pytest.fixture(autouse=True)
def free_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of ours cost nothing, and handing tiles on neither."""
    for name, cost in FREE.items():
        monkeypatch.setattr(convolution_cost, name, cost)


@pytest.fixture(params=["apart", "inside"])
def tiles_anywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles that stay in their kernel cost nothing more, or more than those that are handed on."""
    for name, cost in NEAR.items() if request.param == "inside" else ():
        monkeypatch.setattr(convolution_cost, name, cost)


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def tiles_of(graph: Graph) -> int:
    """How many convolutions of an optimized graph are computed by tiles."""
    return sum(decision.code == "by-tiles" for decision in graphkernel.explain(graph).decisions)


def windows(image: np.ndarray, side: int, step: int) -> np.ndarray:
    """[N, C, tiles down, tiles across, side, side]."""
    view = np.lib.stride_tricks.sliding_window_view(image, (side, side), (2, 3))
    return view[:, :, ::step, ::step]


def exact(image: np.ndarray, weights: np.ndarray, pad: int) -> np.ndarray:
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    return np.einsum("nchwrs,ocrs->nohw", windows(padded, WINDOW, 1), weights.astype(np.float64))


def bound(image: np.ndarray, weights: np.ndarray, pad: int, of_weight: int = 1) -> np.ndarray:
    """How far results may be off: each term passes two sums of two, those ``of_weight``, C products, two sums of three.

    The last tile of an odd side reaches a row of zeros further.
    """
    sides = [side + 2 * pad - WINDOW + 1 for side in image.shape[2:]]
    image = np.pad(image, ((0, 0), (0, 0), *((0, side % RESULTS) for side in sides)))
    left, right, back = (np.abs(np.array(rows, np.float64)) for rows in (IMAGE_ROWS, WEIGHT_ROWS, RESULT_ROWS))
    padded = np.pad(np.abs(image.astype(np.float64)), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    tiles = np.einsum("ar,nchwrs,bs->nchwab", left, windows(padded, SIDE, RESULTS), left)
    factors = np.einsum("ar,ocrs,bs->ocab", right, np.abs(weights.astype(np.float64)), right)
    sums = np.einsum("pa,nohwab,qb->nohpwq", back, np.einsum("nchwab,ocab->nohwab", tiles, factors), back)
    count, results, rows, _, columns, _ = sums.shape
    steps = (2 + of_weight + image.shape[1] + 4) * ROUNDING
    whole = sums.reshape(count, results, RESULTS * rows, RESULTS * columns)
    return steps / (1 - steps) * whole[:, :, : sides[0], : sides[1]]


SIZES = pytest.mark.parametrize(
    ("shape", "results", "pad"),
    [
        ((1, 5, 4, 4), 7, 0),
        ((2, 8, 6, 10), 16, 1),
        ((1, 17, 8, 4), 24, 1),
        ((3, 40, 12, 6), 33, 0),
        ((1, 64, 28, 28), 64, 1),
        ((1, 5, 3, 3), 7, 0),  # one result, of one tile
        ((2, 8, 3, 6), 9, 0),
        ((2, 8, 7, 10), 16, 1),
        ((1, 17, 8, 5), 24, 1),
        ((3, 40, 9, 7), 33, 0),
        ((1, 64, 35, 35), 64, 1),
    ],
)


@SIZES
@pytest.mark.usefixtures("tiles_anywhere")
def test_results_are_within_the_bound_of_their_roundings(shape: tuple[int, ...], results: int, pad: int) -> None:
    image, weights = drawn(0, *shape), drawn(1, results, shape[1], WINDOW, WINDOW)
    graph = graphkernel.trace(lambda x: ops.conv2d(x, weights, pad=(pad,) * 4), graphkernel.spec(shape, "float32"))
    assert tiles_of(graph) == 1
    found = np.asarray(graphkernel.compile(graph)(image), np.float64)
    assert (np.abs(found - exact(image, weights, pad)) <= bound(image, weights, pad)).all()


@SIZES
def test_weights_that_change_from_run_to_run_are_transformed_in_each(
    shape: tuple[int, ...], results: int, pad: int
) -> None:
    kinds = [graphkernel.spec(each, "float32") for each in (shape, (results, shape[1], WINDOW, WINDOW))]
    graph = graphkernel.trace(lambda x, w: ops.conv2d(x, w, pad=(pad,) * 4), *kinds)
    assert tiles_of(graph) == 1
    run = graphkernel.compile(graph)
    for seed in range(2):
        image, weights = drawn(seed, *shape), drawn(seed + 2, results, shape[1], WINDOW, WINDOW)
        found = np.asarray(run(image, weights), np.float64)
        assert (np.abs(found - exact(image, weights, pad)) <= bound(image, weights, pad, of_weight=4)).all()


@pytest.mark.parametrize(("side", "is_learnt", "by_tiles"), [(8, False, True), (8, True, False), (28, True, True)])
def test_few_pixels_do_not_pay_for_weights_that_are_learnt(side: int, is_learnt: bool, by_tiles: bool) -> None:
    builder, of = Builder(), dtype("float32")
    image = builder.parameter("image", TensorType((1, side, side, 64), of))
    weights = builder.parameter("weights", TensorType((WINDOW, WINDOW, 64, 64), of))
    node = builder.emit(CONV2D, image, weights, format="NHWC", pad=(1, 1, 1, 1)).node
    with pytest.MonkeyPatch.context() as costs:
        for name, cost in COSTS.items():
            costs.setattr(convolution_cost, name, cost)
        assert tiles_cost(node, is_learnt).by_tiles is by_tiles


def _activated(x: Tensor) -> Tensor:
    return ops.relu(ops.conv2d(x, drawn(1, 8, 8, 3, 3), pad=(1, 1, 1, 1)) + drawn(2, 8, 1, 1))


def _residual(x: Tensor) -> Tensor:
    return ops.relu(ops.conv2d(x, drawn(1, 8, 8, 3, 3), pad=(1, 1, 1, 1)) + x)


def _joined(x: Tensor) -> Tensor:
    parts = [ops.conv2d(x, drawn(1, 16, 8, 1, 1)), ops.conv2d(x, drawn(2, 24, 8, 3, 3), pad=(1, 1, 1, 1))]
    return ops.concat([ops.relu(part) for part in parts], axis=1)


def _twice(x: Tensor) -> Tensor:
    parts = [ops.conv2d(x, drawn(seed, 8, 8, 3, 3), pad=(1, 1, 1, 1)) for seed in (1, 2)]
    return ops.concat(parts, axis=1)


def _scaled(x: Tensor) -> Tensor:
    """What stands behind is of one number for each image, channel, row and column in turn."""
    found = ops.conv2d(x, drawn(1, 8, 8, 3, 3), pad=(1, 1, 1, 1))
    (_, _, rows, columns) = (int(str(side)) for side in found.shape)
    found = found * ops.sigmoid(found) * drawn(2, 2, 8, 1, 1)
    return found * drawn(3, rows, 1) + drawn(4, columns)


def _summed(x: Tensor) -> Tensor:
    found = _activated(x)
    return found * ops.reduce_mean(found, axis=(2, 3), keep_dims=True)


def _chained(x: Tensor) -> Tensor:
    return _residual(_activated(x))


@pytest.mark.parametrize("sides", [(6, 8), (7, 8), (6, 9), (5, 7), (1, 3)], ids=str)
@pytest.mark.parametrize(
    ("network", "count"),
    [
        (_activated, 1),
        (_residual, 1),
        (_joined, 1),
        (_scaled, 1),
        (_summed, 1),
        (_twice, 2),
        (_chained, 2),
    ],
)
@pytest.mark.usefixtures("tiles_anywhere")
def test_whatever_stands_beside_a_convolution_stays_in_its_kernel(
    network: Network, count: int, sides: tuple[int, int]
) -> None:
    graph = graphkernel.trace(network, graphkernel.spec((2, 8, *sides), "float32"))
    assert tiles_of(graph) == count
    image = drawn(0, 2, 8, *sides)
    (found,), (wanted,) = graphkernel.compile(graph)(image), graphkernel.compile(graph, 0)(image)
    most = max(10.0, float(np.abs(wanted).max()))  # of what cancels in a small result
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * most)


@pytest.mark.parametrize(
    "network",
    [
        lambda x: ops.conv2d(x, drawn(1, 8, 8, 3, 3), pad=(1, 1, 1, 1), stride=(2, 2)),
        lambda x: ops.conv2d(x, drawn(1, 8, 8, 5, 5), pad=(2, 2, 2, 2)),
        lambda x: ops.conv2d(x, drawn(1, 8, 4, 3, 3), pad=(1, 1, 1, 1), group=2),
    ],
    ids=["strided", "wide", "grouped"],
)
def test_other_convolutions_stay_as_they_are(network: Network) -> None:
    graph = graphkernel.trace(network, graphkernel.spec((1, 8, 8, 8), "float32"))
    assert tiles_of(graph) == 0
    optimized = graphkernel.optimize(graph)
    bodies = [node.body for node in optimized.operators if node.body is not None]
    assert any(node.op is CONV2D for body in bodies for node in body.operators)


def trained(shape: tuple[int, ...], results: int, pad: int) -> Graph:
    """The sum of a convolution's results times what is given, by its weights."""

    def loss(w: Tensor, x: Tensor, dy: Tensor) -> Tensor:
        return ops.reduce_sum(ops.conv2d(x, w, pad=(pad,) * 4) * dy)

    sides = [side + 2 * pad - WINDOW + 1 for side in shape[2:]]
    shapes = (results, shape[1], WINDOW, WINDOW), shape, (shape[0], results, *sides)
    return graphkernel.trace(graphkernel.value_and_grad(loss), *[graphkernel.spec(each, "float32") for each in shapes])


def cuts(graph: Graph) -> int:
    """How many kernels cut an image in tiles."""
    bodies = [node.body for node in graphkernel.optimize(graph).operators if node.body is not None]
    return sum(sum(node.op is STRIDED_SLICE for node in body.operators) == SIDE**2 for body in bodies)


def exact_gradient(image: np.ndarray, dy: np.ndarray, pad: int) -> np.ndarray:
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = dy.shape[2:]
    seen = np.lib.stride_tricks.sliding_window_view(padded, (rows, columns), (2, 3))
    return np.einsum("ncrshw,nohw->ocrs", seen, dy.astype(np.float64))


def bound_of_gradient(image: np.ndarray, dy: np.ndarray, pad: int) -> np.ndarray:
    """Each term passes two sums of two on either side, one over all tiles, two sums of three."""
    left, right, back = (np.abs(np.array(rows, np.float64)) for rows in (IMAGE_ROWS, WEIGHT_ROWS, RESULT_ROWS))
    rest = [(0, side % RESULTS) for side in dy.shape[2:]]
    dy = np.pad(dy, ((0, 0), (0, 0), *rest))
    sides = [(pad, pad + own) for _, own in rest]
    padded = np.pad(np.abs(image.astype(np.float64)), ((0, 0), (0, 0), *sides))
    tiles = np.einsum("ar,nchwrs,bs->nchwab", left, windows(padded, SIDE, RESULTS), left)
    spread = np.einsum("pa,nohwpq,qb->nohwab", back, windows(np.abs(dy.astype(np.float64)), RESULTS, RESULTS), back)
    steps = (2 + 2 + tiles[:, 0, ..., 0, 0].size + 4) * ROUNDING
    places = np.einsum("nchwab,nohwab->ocab", tiles, spread)
    return steps / (1 - steps) * np.einsum("ar,ocab,bs->ocrs", right, places, right)


@SIZES
def test_gradients_of_windows_are_within_the_bound_of_their_roundings(
    shape: tuple[int, ...], results: int, pad: int
) -> None:
    graph = trained(shape, results, pad)
    image, weights = drawn(0, *shape), drawn(1, results, shape[1], WINDOW, WINDOW)
    dy = drawn(2, *(int(str(extent)) for extent in graph.inputs[2].type.shape))
    exe = graphkernel.compile(graph)
    assert exe.report.host == ()
    found = np.asarray(exe(weights, image, dy)[1], np.float64)
    assert (np.abs(found - exact_gradient(image, dy, pad)) <= bound_of_gradient(image, dy, pad)).all()


@pytest.mark.parametrize("sides", [(6, 8), (7, 8), (6, 9)], ids=str)
def test_a_gradient_reads_the_tiles_of_its_convolution(sides: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    graph = trained((2, 8, *sides), 16, 1)
    assert tiles_of(graph) == 1
    assert cuts(graph) == 1
    monkeypatch.setattr(winograd, "MOST_HELD", 0)
    assert cuts(graph) == 2


@pytest.mark.parametrize("name", ["winograd", "build.winograd", "6.25"])
def test_without_the_pass_gradients_are_products_of_patches(name: str) -> None:
    graph = trained((2, 8, 6, 8), 16, 1)
    assert graphkernel.compile(graph, flags=f"--disable_pass={name}").report.host == ()


@pytest.mark.usefixtures("tiles_anywhere")
def test_any_number_of_images_has_odd_sides() -> None:
    graph = graphkernel.trace(_residual, graphkernel.spec(("N", 8, 7, 5), "float32"))
    assert tiles_of(graph) == 1
    run, plain = graphkernel.compile(graph), graphkernel.compile(graph, 0)
    for count in (1, 3):
        image = drawn(count, count, 8, 7, 5)
        np.testing.assert_allclose(run(image), plain(image), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("sides", "steps"),
    [((8, 8), (2, 2)), ((9, 7), (2, 2)), ((16, 20), (4, 4)), ((13, 7), (3, 2)), ((3, 6), (4, 1)), ((28, 14), (2, 4))],
    ids=str,
)
@pytest.mark.parametrize("network", [_activated, _residual, _scaled], ids=["activated", "residual", "scaled"])
def test_windows_whose_pixels_lie_apart_are_tiles_of_each_phase(
    network: Network, sides: tuple[int, int], steps: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pad = tuple(step for step in steps for _ in range(2))
    apart = functools.partial(ops.conv2d, dilation=steps)
    monkeypatch.setattr(ops, "conv2d", lambda x, w, pad=None, own=pad: apart(x, w, pad=own))
    graph = graphkernel.trace(network, graphkernel.spec((2, 8, *sides), "float32"))
    assert tiles_of(graph) == 1
    image = drawn(0, 2, 8, *sides)
    (found,), (wanted,) = graphkernel.compile(graph)(image), graphkernel.compile(graph, 0)(image)
    most = max(10.0, float(np.abs(wanted).max()))  # of what cancels in a small result
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * most)


def test_what_is_cut_apart_meets_as_whole_images() -> None:
    """Two convolutions of one kernel, of which one has its pixels apart: 7 rows are other pieces for each."""
    builder = Builder()
    image = builder.parameter("image", TensorType((1, 7, 8, 8), dtype("float32")))
    weights = [builder.parameter(f"w{step}", TensorType((3, 3, 8, 8), dtype("float32"))) for step in (1, 2)]
    form: dict[str, Any] = {"format": "NHWC", "own_kernel": True}
    near, far = (
        builder.emit(CONV2D, image, w, pad=(step,) * 4, dilation=(step, step), **form)
        for step, w in enumerate(weights, 1)
    )
    body = Graph("both", (image, *weights), (builder.emit(ADD, builder.emit(ADD, near, far), near),))
    graph = Graph("main", body.inputs, call_of(with_unique_labels(body), body.inputs).outs)
    changed = winograd.winograd(graph, Context())
    assert not any(node.op is CONV2D for call in changed.operators if call.body for node in call.body.operators)
    arrays = [drawn(seed, *map(int, map(str, value.type.shape))) for seed, value in enumerate(graph.inputs)]
    found, wanted = (evaluate(each, arrays)[0] for each in (changed, graph))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-5)


@pytest.mark.usefixtures("tiles_anywhere")
@pytest.mark.parametrize("sides", [(8, 8), (8, 7), (9, 7)], ids=str)
def test_each_result_of_a_tile_is_computed_and_stored_once(sides: tuple[int, int]) -> None:
    graph = graphkernel.optimize(graphkernel.trace(_residual, graphkernel.spec((1, 8, *sides), "float32")))
    (body,) = [
        node.body for node in graph.operators if node.body and any(part.op is SPLIT for part in node.body.operators)
    ]
    constants = [number for number, value in enumerate(body.inputs) if value.type.shape == (SIDE**2, 8, 8)]
    nest = kernelgen.compile(to_desc(body), constants=constants).lowered.nest
    held = [buffer.shape for buffer in nest.buffers if buffer.space is Space.WORKSPACE]
    assert held in ([], [(10, sides[1] + 2 + sides[1] % 2, 8)])  # the image with its margins


def test_two_convolutions_of_an_image_read_the_same_tiles() -> None:
    assert cuts(graphkernel.trace(_twice, graphkernel.spec((2, 8, 6, 8), "float32"))) == 1


@pytest.mark.parametrize(("side", "channels", "by_tiles"), [(2, 64, False), (28, 64, True), (56, 3, False)])
def test_tiles_pay_for_gradients_of_many_pixels_and_channels(side: int, channels: int, by_tiles: bool) -> None:
    builder, of = Builder(), dtype("float32")
    dy = builder.parameter("dy", TensorType((1, 64, side, side), of))
    image = builder.parameter("image", TensorType((1, channels, side, side), of))
    size = (64, channels, WINDOW, WINDOW)
    node = builder.emit(CONV2D_BACKPROP_FILTER, dy, image, filter_size=size, pad=(1, 1, 1, 1)).node
    with pytest.MonkeyPatch.context() as costs:
        for name, cost in COSTS.items():
            costs.setattr(convolution_cost, name, cost)
        assert gradient_cost(node).by_tiles is by_tiles
