"""All named fusions in their order on random networks of their parts: shared values, chains and operands in circles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.ops import OPS, Tensor
from graphkernel.options import Options
from graphkernel.passes.expand import graph_kernel_expander
from graphkernel.passes.named_fusion import FUSION_GROUP, WRITTEN_OUT
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.text import parse
from kernelgen.tensor.types import TensorType, dtype, sym
from kernelgen.tensor.verify import verify

ROWS, COLUMNS = 6, 8
Step = Callable[[Tensor, Tensor, Tensor], Tensor]


def scale(x: Tensor) -> Tensor:
    """A vector for a norm that is computed from rows, so that a product may not wait for itself."""
    return ops.tanh(ops.reduce_max(x, 0))


def gated(x: Tensor) -> Tensor:
    gate, linear = ops.apply_all(OPS["SplitWithSize"], x, split_sizes=(4, 4), axis=1)
    product = linear * ops.silu(gate)
    return ops.concat([product, ops.tanh(product)], 1)


def side_by_side(x: Tensor) -> Tensor:
    pieces = ops.split(x, 2, 0)
    return ops.reshape(ops.concat(pieces, 1), x.shape)


def centred(x: Tensor) -> Tensor:
    return x - ops.reduce_mean(x, -1, keep_dims=True)


STEPS: tuple[Step, ...] = (
    lambda x, y, g: ops.tanh(x + y),
    lambda x, y, g: x + y,
    lambda x, y, g: ops.rms_norm(x + y, g)[0],
    lambda x, y, g: ops.rms_norm(x, scale(y))[0],
    lambda x, y, g: ops.layer_norm(x, g, scale(y))[0],
    lambda x, y, g: ops.layer_norm_v3(x, scale(y), g)[0] + ops.tanh(y),
    lambda x, y, g: ops.layer_norm_ext(x, (COLUMNS,), g, g)[0],
    lambda x, y, g: ops.cast(ops.rms_norm(ops.cast(x, "float64"), ops.cast(g, "float64"))[0], "float32"),
    lambda x, y, g: gated(ops.tanh(x)),
    lambda x, y, g: side_by_side(x),
    lambda x, y, g: ops.dynamic_reshape(x, ops.shape_of(y), y.shape),
    lambda x, y, g: g * (x * ops.rsqrt(ops.reduce_mean(x * x, -1, keep_dims=True) + 1e-3)),
    lambda x, y, g: scale(y) * (x / ops.sqrt(ops.reduce_mean(ops.square(x), -1, keep_dims=True) + 1e-3)),
    lambda x, y, g: (
        centred(x) * ops.rsqrt(ops.reduce_mean(ops.square(centred(x)), -1, keep_dims=True) + 1e-3) * g + scale(y)
    ),
    lambda x, y, g: x * ops.sigmoid(x),
    lambda x, y, g: ops.tanh(x) * g + ops.concat([-ops.tanh(x)[:, 4:], ops.tanh(x)[:, :4]], 1) * y,
)


@st.composite
def networks(draw: st.DrawFn) -> tuple[Graph, list[np.ndarray[Any, Any]]]:
    builder = Builder()
    rows = ROWS if draw(st.booleans()) else sym("N")
    inputs = [builder.parameter(f"x{i}", TensorType((rows, COLUMNS), dtype("float32"))) for i in range(2)]
    vector = builder.parameter("g", TensorType((COLUMNS,), dtype("float32")))
    values = [Tensor(value, builder) for value in inputs]
    steps = STEPS if rows == ROWS else tuple(step for step in STEPS if step is not STEPS[9])  # symbols do not split
    for _ in range(draw(st.integers(1, 14))):
        x, y = draw(st.sampled_from(values[-4:])), draw(st.sampled_from(values[-4:]))
        values.append(draw(st.sampled_from(steps))(x, y, Tensor(vector, builder)))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [rng.standard_normal((ROWS, COLUMNS)).astype(np.float32) for _ in inputs]
    graph = Graph("random", (*inputs, vector), tuple(x.value for x in outputs))
    return graph, [*arrays, rng.uniform(0.5, 1.5, COLUMNS).astype(np.float32)]


@given(networks())
def test_the_numbers_stay(network: tuple[Graph, list[np.ndarray[Any, Any]]]) -> None:
    before, arrays = network
    after = before
    for entry in (*WRITTEN_OUT, *FUSION_GROUP):
        after = entry(after)
        verify(after)
        assert entry(after) is after, entry.name
    assert parse(str(after), OPS) == after
    expanded = graph_kernel_expander(after, builtin_catalogue().context(Options()))
    expected = evaluate(before, arrays)
    for graph in (after, expanded):
        for found, true in zip(evaluate(graph, arrays), expected, strict=True):
            np.testing.assert_allclose(found, true, rtol=2e-3, atol=2e-3)
