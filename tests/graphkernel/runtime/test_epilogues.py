"""What onnxruntime computes within a convolution is no kernel; everything else behind a convolution is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.runtime.onnxruntime.clips import clipped as written_clips

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((2, 3, 8, 8)).astype(np.float32)
WEIGHTS = RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32)
BIAS = RANDOM.standard_normal(4).astype(np.float32)
FLAGS = "--disable_pass=to_nhwc_format"
"""Convolutions as small as these are kernels of ours otherwise."""
OTHER = RANDOM.standard_normal((2, 4, 8, 8)).astype(np.float32)


def convolved(x: Any) -> Any:
    return ops.conv2d(x, WEIGHTS, 1, 1)


def biased(x: Any) -> Any:
    return ops.bias_add(convolved(x), BIAS)


def clipped(x: Any) -> Any:
    return ops.minimum(ops.maximum(x, 0.0), 6.0)


WITHIN: dict[str, Callable[..., Any]] = {
    "a bias": lambda x, z: biased(x),
    "an activation": lambda x, z: ops.tanh(convolved(x)),
    "a bias and an activation": lambda x, z: ops.relu(biased(x)),
    "a bias and a clip": lambda x, z: clipped(biased(x)),
    "one more tensor": lambda x, z: ops.relu(ops.add(biased(x), z)),
}
BEHIND: dict[str, Callable[..., Any]] = {
    "two activations": lambda x, z: ops.relu(ops.tanh(biased(x))),
    "a product": lambda x, z: ops.mul(biased(x), z),
    "a tensor before the bias": lambda x, z: ops.bias_add(ops.add(convolved(x), z), BIAS),
    "a tensor behind the activation": lambda x, z: ops.add(ops.relu(biased(x)), z),
    "a sum over the image": lambda x, z: ops.reduce_sum(ops.relu(biased(x)), axis=(2, 3)),
}


@pytest.mark.parametrize("what", WITHIN)
def test_what_is_computed_within_the_convolution_is_no_kernel(what: str):
    graph = gk.trace(WITHIN[what], IMAGE, OTHER)
    found = gk.compile(graph, flags=FLAGS)
    assert len(found.report.kernels) == 0, found.report
    assert len(found.report.host) == 1
    np.testing.assert_allclose(found(IMAGE, OTHER)[0], gk.evaluate(graph, (IMAGE, OTHER))[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("what", BEHIND)
def test_anything_else_behind_a_convolution_is_a_kernel(what: str):
    graph = gk.trace(BEHIND[what], IMAGE, OTHER)
    found = gk.compile(graph, flags=FLAGS)
    assert len(found.report.kernels) == 1, found.report
    np.testing.assert_allclose(found(IMAGE, OTHER)[0], gk.evaluate(graph, (IMAGE, OTHER))[0], rtol=1e-5, atol=1e-5)


def test_a_convolution_that_others_read_too_keeps_its_kernels():
    def network(x: Any) -> tuple[Any, Any]:
        found = biased(x)
        return ops.relu(found), ops.tanh(found)

    assert gk.compile(gk.trace(network, IMAGE), flags=FLAGS).report.kernels


def test_numpy_computes_nothing_within_a_convolution():
    assert gk.compile(gk.trace(lambda x: ops.relu(biased(x)), IMAGE), host="numpy", flags=FLAGS).report.kernels


def test_a_clip_keeps_what_is_no_number():
    image = IMAGE.copy()
    image[0] = np.nan
    (found,) = gk.compile(gk.trace(lambda x: clipped(biased(x)), image), flags=FLAGS)(image)
    assert np.isnan(found[0]).all()
    assert found[1].min() == 0.0
    assert found[1].max() == 6.0


def test_a_rectifier_keeps_what_is_no_number():
    image = IMAGE.copy()
    image[0] = np.nan
    (found,) = gk.compile(gk.trace(lambda x: ops.relu(biased(x)), image), flags=FLAGS)(image)
    assert np.isnan(found[0]).all()
    assert found[1].min() == 0.0


@pytest.mark.parametrize(
    ("low", "written"), [(np.float32(0), "Relu"), (np.float32(1), "Max"), (np.int32(0), "Max"), (np.float16(0), "Max")]
)
def test_a_maximum_with_nought_is_what_a_library_computes_within_a_convolution(low: np.generic, written: str):
    node = helper.make_node("Max", ["low", "x"], ["y"], name="rectified")
    (found,) = written_clips([node], {"low": np.asarray(low)}, {"y"})
    assert (found.op_type, list(found.output), found.name) == (written, ["y"], "rectified")
