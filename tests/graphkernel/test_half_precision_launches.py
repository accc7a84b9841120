"""Float16 on the gpu: no level needs more launches than the graph without kernels, whatever the extents of its products."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphkernel as gk
from benchmarks.networks import Launches
from examples.networks.bert import Bert
from examples.networks.gpt import Gpt
from examples.networks.llama import Llama
from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import TensorType, dtype

HALF = "float16"


def product(m: int, n: int, k: int, after: Callable[[Tensor], Tensor]) -> Graph:
    return trace(lambda x, w: after(ops.matmul(x, w)), spec((m, k), HALF), spec((k, n), HALF))


def dense(m: int, n: int, k: int) -> Graph:
    def net(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
        return ops.gelu(ops.bias_add(ops.matmul(x, w), bias), approximate="tanh")

    return trace(net, spec((m, k), HALF), spec((k, n), HALF), spec(n, HALF))


NETWORKS: dict[str, Callable[[], Graph]] = {
    "bert": lambda: Bert(
        layers=1, hidden=24, heads=2, inner=36, vocabulary=9, positions=6, dtype=HALF).encoder(2, 5),
    "gpt": lambda: Gpt(hidden=64, heads=4, dtype=HALF).block(1, 16),
    "llama": lambda: Llama(hidden=64, heads=4, key_heads=2, inner=96, dtype=HALF).block(1, 16),
    "vision_transformer": lambda: dense(197, 768, 768),
    "square": lambda: product(64, 64, 64, ops.exp),
    "odd_rows": lambda: product(33, 64, 64, ops.exp),
    "odd_columns": lambda: product(100, 1001, 1000, ops.exp),
    "odd_terms": lambda: product(64, 64, 63, lambda y: y * y),
    "odd": lambda: product(7, 9, 11, ops.relu),
}  # fmt: skip


def launches(graph: Graph, level: int) -> int:
    return Launches.of(gk.optimize(graph, level, "gpu"), "gpu").launches


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_and_odd_products(name: str) -> None:
    graph = NETWORKS[name]()
    unfused = launches(graph, 0)
    assert all(launches(graph, level) <= unfused for level in (1, 2, 3))


@pytest.mark.parametrize("name", ["vision_transformer", "odd_rows", "odd_columns", "odd_terms", "odd"])
def test_a_product_of_odd_extents_and_what_follows_it_are_one_launch(name: str) -> None:
    assert [launches(NETWORKS[name](), level) for level in (1, 2, 3)] == [1, 1, 1]


STEPS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda x, w: ops.matmul(x, w), lambda x, w: ops.matmul(x, w, transpose_b=True), lambda x, w: ops.exp(x),
    lambda x, w: x + w, lambda x, w: ops.relu(x) * 0.5, lambda x, w: x - ops.reduce_max(x, -1, keep_dims=True),
    lambda x, w: ops.reduce_sum(x, 0, keep_dims=True) * w, lambda x, w: ops.transpose(x, (1, 0)),
    lambda x, w: ops.tanh(ops.cast(x, "float32")).astype("float16"),
)  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Square values of float16, so that every step fits every other one; products among them."""
    side = draw(st.sampled_from([8, 17, 31, 32, 50, 64, 65]))
    builder = Builder()
    inputs = [builder.parameter(f"x{i}", TensorType((side, side), dtype(HALF))) for i in range(2)]
    values = [Tensor(value, builder) for value in inputs]
    for _ in range(draw(st.integers(1, 10))):
        step = draw(st.sampled_from(STEPS))
        values.append(step(draw(st.sampled_from(values)), draw(st.sampled_from(values))))
    chosen = draw(st.lists(st.sampled_from(values[2:]), min_size=1, max_size=3))
    return Graph("random", tuple(inputs), tuple(value.value for value in chosen))


@given(graphs())
def test_random_graphs(graph: Graph) -> None:
    unfused = launches(graph, 0)
    assert all(launches(graph, level) <= unfused for level in (1, 2, 3))
