"""The networks at small size: gradients are right, and every level on every target keeps the numbers and fuses."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from benchmarks.networks import LEVELS, NETWORKS, SMALL_BERT, TARGETS, Launches
from examples.networks.resnet import Bottleneck
from examples.networks.training import Loss, gradient_graph, training_step
from examples.networks.weights import Specs, draw
from graphkernel import ops
from graphkernel.frontends.trace import spec
from graphkernel.report.difference import largest_difference
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost
from graphkernel.runtime.steps.host import NumpyHost
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType
from kernelgen.tensor.verify import verify
from tests.support.plan_runs import by_meaning, fault


def scalar_loss(inputs: Any, weights: Any) -> Any:
    """Products of every kind of transposition, and norms."""
    x, y = weights["x"], weights["y"]
    product = ops.matmul(ops.silu(x), y, transpose_a=True)
    squeezed, _ = ops.rms_norm(product - ops.matmul(y, x, transpose_b=True), weights["g"])
    left = ops.matmul(x, y, transpose_a=True, transpose_b=True)
    return ops.reduce_sum(squeezed * x) + ops.reduce_sum(ops.reduce_mean(left, axis=1) * 2.0)


BLOCK = Bottleneck(channels=2, projected=True)
STEP = 1e-6
HOSTS = {"numpy": NumpyHost(), "onnxruntime": OnnxRuntimeHost(threads=1)}
LOSSES: dict[str, tuple[Loss, Specs, Specs]] = {
    "bert": (
        SMALL_BERT.loss,
        {"ids": spec((2, 5), "int32"), "mask": spec((2, 5), "int32"), "labels": spec(2, "int32")},
        SMALL_BERT.trained(),
    ),
    "bottleneck": (BLOCK.loss, {"x": spec((2, 8, 4, 4)), "labels": spec(2, "int32")}, BLOCK.trained(3)),
    "others": (scalar_loss, {}, {"x": spec((3, 3)), "y": spec((3, 3)), "g": spec(3)}),
}


@cache
def evaluated(name: str) -> tuple[Graph, list[np.ndarray], tuple[np.ndarray, ...]]:
    graph = NETWORKS[name].tiny()
    arrays = draw(graph)
    return graph, arrays, gk.evaluate(graph, arrays)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_numbers_stay_and_launches_shrink(name: str, target: str, level: int) -> None:
    graph, arrays, expected = evaluated(name)
    fused = gk.optimize(graph, level, target)
    verify(fused)
    assert fused.aliases == graph.aliases
    for got, want in zip(gk.evaluate(fused, arrays), expected, strict=True):
        assert largest_difference(got, want) < NETWORKS[name].tolerance
    before, after = Launches.of(graph, target), Launches.of(fused, target)
    if level:
        assert after.kernels > 0
        assert after.bytes < before.bytes or target == "ascend"  # where fewer operators may be in kernels
        assert after.launches < before.launches
    else:
        assert fused is graph


@pytest.mark.parametrize("name", NETWORKS)
def test_optimizing_again_changes_nothing(name: str) -> None:
    fused = gk.optimize(evaluated(name)[0])
    assert gk.optimize(fused) == fused


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", NETWORKS)
def test_plans_are_right_in_poisoned_memory(name: str, level: int, host: str) -> None:
    """Kernels by their meaning: the plan is looked at."""
    graph, arrays, _ = evaluated(name)
    changed = {"enable_auto_tensor_inplace": True, "composite_op_limit_size": 3}
    for flags in ({}, changed) if level else ({},):
        options: dict[str, object] = {"opt_level": level, **flags}
        assert fault(graph, (arrays, arrays), options, compiler=by_meaning, host=HOSTS[host]) is None


@pytest.mark.parametrize("name", ["bert_training", "bottleneck_training"])
def test_a_training_step_compiles_and_updates_in_place(name: str) -> None:
    graph, arrays, expected = evaluated(name)
    executable = gk.compile(graph, opt_level=2)
    buffers = [array.copy() for array in arrays]
    outputs = executable(*buffers)
    for got, want in zip(outputs, expected, strict=True):
        assert largest_difference(got, want) < 1e-4
    assert graph.aliases
    for alias in graph.aliases:
        assert not np.array_equal(buffers[alias.input], arrays[alias.input])
        np.testing.assert_array_equal(buffers[alias.input], outputs[alias.output])


@pytest.mark.parametrize("name", LOSSES)
def test_every_weight_and_its_moments_are_updated(name: str) -> None:
    loss, inputs, weights = LOSSES[name]
    graph = training_step(name, loss, inputs, weights)
    statistics = [key for key in weights if key.endswith(("_mean", "_variance"))]
    assert len(graph.aliases) == 3 * (len(weights) - len(statistics)) + len(statistics)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    loss, inputs, weights = LOSSES[name]
    graph = gradient_graph(name, loss, wide(inputs), wide(weights))
    arrays = draw(graph)
    keys = [key for key in weights if not key.endswith(("_mean", "_variance"))]
    _, *found = gk.evaluate(graph, arrays)[: 1 + len(keys)]
    positions = {key: len(inputs) + place for place, key in enumerate(weights)}
    generator = np.random.default_rng(1)
    for key, gradient in zip(keys, found, strict=True):
        direction = generator.standard_normal(gradient.shape)
        slope = (
            value(graph, arrays, positions[key], STEP * direction)
            - value(graph, arrays, positions[key], -STEP * direction)
        ) / (2 * STEP)
        np.testing.assert_allclose(np.vdot(gradient, direction), slope, rtol=1e-5, atol=1e-8, err_msg=key)


def value(graph: Graph, arrays: list[np.ndarray], position: int, change: np.ndarray) -> float:
    """The loss with one weight changed."""
    changed = [array + change if place == position else array for place, array in enumerate(arrays)]
    return float(gk.evaluate(graph, changed)[0])


def wide(specs: Specs) -> dict[str, TensorType]:
    """Floats in float64."""
    return {key: spec(of.shape, "float64") if of.dtype.is_float else of for key, of in specs.items()}
