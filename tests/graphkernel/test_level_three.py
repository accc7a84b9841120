"""What level 3 gains over level 2, by the kind of network: fewer launches where the passes pay, and the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from benchmarks.networks import NO_LAUNCH
from graphkernel import ops
from kernelgen.tensor.graph import Graph

M, V = gk.spec((256, 256)), gk.spec((256,))


def experts(x: Any, gate: Any, *weights: Any) -> Any:
    """A mixture of experts: each is a product of its own, all read one tensor."""
    shares = ops.softmax(x @ gate)
    return sum(ops.gelu(x @ weight) * shares[:, i : i + 1] for i, weight in enumerate(weights))


def projections(x: Any, q: Any, k: Any, v: Any, a: Any, b: Any, c: Any) -> Any:
    """Query, key and value."""
    return x @ q + a, x @ k + b, x @ v + c


def updates(*parameters: Any) -> Any:
    """An optimizer's step of many small parameters."""
    return tuple(ops.tanh(x) * 0.9 + x * 0.1 for x in parameters)


NETWORKS: Mapping[str, Graph] = {
    "experts": gk.trace(experts, M, gk.spec((256, 4)), M, M, M, M),
    "projections": gk.trace(projections, M, M, M, M, V, V, V),
    "updates": gk.trace(updates, *(gk.spec((64 * i,)) for i in range(1, 9))),
    "branches": gk.trace(lambda x, y, z: (ops.softmax(x), ops.reduce_sum(ops.exp(y), 0), ops.gelu(z)), M, M, V),
    "large updates": gk.trace(updates, *(gk.spec((512 + i, 512)) for i in range(4))),
    "sums of other rows": gk.trace(
        lambda x, y: y / ops.reduce_sum(ops.exp(x), 1, keep_dims=True), gk.spec((256, 512)), gk.spec((256, 1024))
    ),
}
GAINS = {
    ("experts", "cpu"), ("experts", "gpu"), ("experts", "ascend"), ("projections", "ascend"), ("updates", "cpu"),
    ("updates", "gpu"), ("updates", "ascend"), ("branches", "gpu"), ("branches", "ascend"), ("sums of other rows", "gpu"),
}  # fmt: skip
SAME = {("large updates", "cpu"), ("projections", "cpu")}  # a call is little beside their work


def launches(graph: Graph) -> int:
    return sum(node.body is not None or node.op.kind not in NO_LAUNCH for node in graph.operators)


def at_levels(name: str, target: str) -> tuple[Graph, Graph]:
    two, three = (gk.optimize(NETWORKS[name], level, target) for level in (2, 3))
    return two, three


@pytest.mark.parametrize(("name", "target"), sorted(GAINS))
def test_level_three_launches_less(name: str, target: str) -> None:
    two, three = at_levels(name, target)
    assert launches(three) < launches(two)
    generator = np.random.default_rng(0)
    shapes = [[int(str(extent)) for extent in value.type.shape] for value in two.inputs]
    arrays = [generator.standard_normal(shape).astype(np.float32) / 4 for shape in shapes]
    for got, want in zip(gk.evaluate(three, arrays), gk.evaluate(NETWORKS[name], arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("name", "target"), sorted(SAME))
def test_where_nothing_is_to_be_gained_level_three_is_level_two(name: str, target: str) -> None:
    two, three = at_levels(name, target)
    assert two == three


def test_kernels_that_were_joined_on_a_cpu_are_one_call() -> None:
    graph = NETWORKS["updates"]
    two, three = (gk.compile(graph, level) for level in (2, 3))
    assert len(three.plan.steps) < len(two.plan.steps)
    arrays = [np.linspace(-2, 2, 64 * i, dtype=np.float32) for i in range(1, 9)]
    for got, want in zip(three(*arrays), two(*arrays), strict=True):
        np.testing.assert_array_equal(got, want)
