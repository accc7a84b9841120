"""Nets and readings that the tests of clustering, splitting and handoff share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.catalogue import collect
from graphkernel.cluster.area import FusionPattern
from graphkernel.decisions import DecisionLog
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS, Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.passes.split import graph_kernel_splitter
from kernelgen.tensor.dims import static_extents
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph, Value

PATTERNS: tuple[FusionPattern, ...] = tuple(collect("graphkernel.patterns", FusionPattern))


def context(**options: Any) -> Context:
    """A context with the built-in fusion patterns and a log of its own."""
    return Context(Options(**options), fusion_patterns=PATTERNS, log=DecisionLog())


def fused(graph: Graph, **options: Any) -> Graph:
    """The graph after clustering and splitting."""
    given = context(**options)
    return graph_kernel_splitter(graph_kernel_cluster(graph, given), given)


def operators(graph: Graph) -> list[str]:
    """What stands in the graph: operator names, a kernel as its operators in brackets."""
    return [
        f"[{' '.join(inner.op.name for inner in node.body.operators)}]" if node.body is not None else node.op.name
        for node in graph.operators
    ]


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Three phases over rows."""
    shifted = ops.exp(x - ops.reduce_max(x, axis=axis, keep_dims=True))
    return shifted / ops.reduce_sum(shifted, axis=axis, keep_dims=True)


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """Mean, variance and an affine map over rows."""
    (count,) = x.shape[-1:]
    assert isinstance(count, int)
    centred = x - ops.reduce_sum(x, axis=-1, keep_dims=True) / float(count)
    variance = ops.reduce_sum(centred * centred, axis=-1, keep_dims=True) / float(count)
    return centred * ops.rsqrt(variance + 1e-5) * gamma + beta


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Log softmax times labels, summed over rows."""
    shifted = logits - ops.reduce_max(logits, axis=-1, keep_dims=True)
    logarithm = shifted - ops.log(ops.reduce_sum(ops.exp(shifted), axis=-1, keep_dims=True))
    return -ops.reduce_sum(labels * logarithm, axis=-1)


def attention_block(x: Tensor, w: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """Products, softmax, residual and layer norm: clusters between operators that no kernel holds."""
    query = ops.matmul(x, w) + bias
    scores = softmax(ops.matmul(query, ops.transpose(query, (1, 0))) * 0.125)
    return layer_norm(ops.matmul(scores, query) + x, gamma, beta)


def attention_graph() -> Graph:
    """:func:`attention_block` at a small size."""
    return trace(attention_block, spec((16, 8)), spec((8, 8)), spec((8,)), spec((8,)), spec((8,)))


def random_graph(seed: int, size: int, *, hosts: float = 0.1, reach: int = 12, shape: Sequence[int] = (4, 6)) -> Graph:
    """A connected graph of ``size`` steps over one shape; ``hosts`` is the share of steps that no kernel holds."""
    chance = random.Random(seed)
    builder = Builder()
    inputs = [builder.parameter(f"x{number}", spec(shape)) for number in range(3)]
    values: list[Value] = list(inputs)

    def pick() -> Value:
        return values[max(0, len(values) - 1 - int(chance.random() ** 3 * reach))]

    def emit(name: str, *args: Value, **attrs: Any) -> Value:
        return builder.emit(OPS[name], *args, **attrs)

    while len(values) < size:
        kind = chance.random()
        if kind < hosts:
            values.append(emit("CumSum", pick(), axis=1))
        elif kind < hosts + 0.1:
            reduced = emit("ReduceMax", pick(), axis=(chance.choice([0, 1]),), keep_dims=True)
            values.append(emit("Minimum", reduced, pick()))
        elif kind < hosts + 0.15:
            flat = emit("Reshape", pick(), shape=(int(np.prod(shape)),))
            values.append(emit("Reshape", emit("Neg", flat), shape=tuple(shape)))
        elif kind < hosts + 0.2:
            turned = emit("Transpose", pick(), perm=(1, 0))
            values.append(emit("Transpose", emit("Tanh", turned), perm=(1, 0)))
        elif kind < hosts + 0.5:
            values.append(emit(chance.choice(["Tanh", "Neg", "Abs"]), pick()))
        else:
            values.append(emit(chance.choice(["Minimum", "Sub", "Maximum"]), pick(), pick()))
    return Graph(f"random_{seed}", tuple(inputs), tuple(dict.fromkeys(values[-3:])))


def same_numbers(before: Graph, after: Graph, seed: int = 0) -> None:
    """Asserts that two graphs compute the same bits on random inputs."""
    generator = np.random.default_rng(seed)
    arrays: list[np.ndarray] = []
    for value in before.inputs:
        shape = static_extents(value.type.shape)
        assert shape is not None, "numbers need static shapes"
        arrays.append(np.asarray(generator.standard_normal(shape)).astype(value.type.dtype.numpy))
    for expected, got in zip(evaluate(before, arrays), evaluate(after, arrays), strict=True):
        np.testing.assert_array_equal(got, expected)
