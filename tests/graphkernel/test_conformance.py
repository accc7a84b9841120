"""What MindSpore's unit tests of clusters and splitters expect, as kernel counts: theirs, and ours where we fuse more."""

from __future__ import annotations

import numpy as np
import pytest
from fusion_nets import context, fused, operators, same_numbers

import graphkernel as gk
from graphkernel import ops
from graphkernel.decisions import DecisionLog
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS, Tensor
from graphkernel.passes.cluster import graph_kernel_cluster
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import Attrs, TensorType

ROWS, ROW, COLUMN, SCALAR = spec((64, 128)), spec((128,)), spec((64, 1)), spec(())


def kernels(graph: Graph) -> int:
    """The number of fused operators."""
    return sum(node.body is not None for node in graph.operators)


def cross_entropy_by_hand(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """SoftmaxCrossEntropyWithLogits in basic operators: the losses and the gradient of the logits."""
    exponential = ops.exp(logits - ops.reduce_max(logits, axis=-1, keep_dims=True))
    probability = exponential / ops.reduce_sum(exponential, axis=-1, keep_dims=True)
    loss = -ops.reduce_sum(labels * ops.log(ops.maximum(probability, 1e-6)), axis=-1)
    return loss, probability - labels


@pytest.mark.parametrize(
    ("flags", "theirs", "ours"),
    [
        ({}, 5, 1),
        ({"enable_fusion_pattern_only": ("elemwise",)}, 8, 6),
        ({"disable_fusion_pattern": ("reduce",)}, 8, 6),
    ],
)
def test_softmax_cross_entropy(flags: dict[str, tuple[str, ...]], theirs: int, ours: int) -> None:
    """Theirs has a Reshape and casts more; a kernel there ends at its first reduction."""
    graph = trace(cross_entropy_by_hand, spec(("N", 32)), spec(("N", 32)))
    assert kernels(fused(graph, **flags)) == ours <= theirs


def chain(x: Tensor, y: Tensor) -> Tensor:
    """Sub, Add, Sub, Add."""
    return ops.add(ops.sub(ops.add(ops.sub(x, y), 1.0), x), y)


def branches(x: Tensor, y: Tensor) -> Tensor:
    """Three groups of operators around two products."""
    a = ops.add(ops.sub(x, y), 1.0)
    return ops.add(ops.neg(ops.mul(ops.sub(ops.mul(a, y), x), x)), a)


@pytest.mark.parametrize(("net", "disabled", "count"), [(chain, "Sub", 2), (branches, "Mul", 3)])
def test_clusters_around_a_disabled_operator(net, disabled: str, count: int) -> None:
    graph = trace(net, spec((4,)), spec((4,)))
    result = graph_kernel_cluster(graph, context(disable_cluster_ops=(disabled,)))
    assert kernels(result) == count
    assert sum(node.op.name == disabled for node in result.operators) == sum(
        node.op.name == disabled for node in graph.operators
    )


@pytest.mark.parametrize(("count", "theirs"), [(1, 1), (3, 1), (7, 3), (20, 16)])
def test_adds_behind_a_product(count: int, theirs: int) -> None:
    """Five results at most stay with the product. Theirs makes a kernel of each add that is left; ours of eight."""

    def net(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        product = ops.matmul(x, w)
        return tuple(ops.add(product, number + 0.5) for number in range(count))

    graph = trace(net, spec((1024, 16)), spec((16, 1024)))
    alone = fused(graph, target="gpu", disable_fusion_pattern=("sibling",))
    assert len(alone.operators) == theirs
    together = fused(graph, target="gpu")
    assert len(together.operators) == 1 + -(-max(count - 5, 0) // 8)


def test_a_reduction_of_what_was_broadcast() -> None:
    """Neg, Mul, BroadcastTo, Div, ReduceSum with the outputs neg, div and sum: two areas there, one here."""

    def net(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
        negative = ops.neg(x)
        wide = ops.broadcast_to(ops.mul(negative, y), (32, 16))
        quotient = ops.div(wide, z)
        return negative, quotient, ops.reduce_sum(quotient, axis=1)

    graph = trace(net, spec((16,)), spec((16,)), spec((32, 16)))
    result = fused(graph)
    assert kernels(result) <= 2
    same_numbers(graph, result)


def test_reductions_over_other_dims_of_one_cast() -> None:
    """test_recompute: a Cast and two reductions. Theirs casts in two kernels; ours needs one, and two without crossing."""

    def net(x: Tensor) -> tuple[Tensor, Tensor]:
        wide = ops.cast(x, "float32")
        return ops.reduce_sum(wide, axis=0), ops.reduce_sum(wide, axis=1)

    graph = trace(net, spec((1024, 1024), "float16"))
    assert operators(fused(graph)) == ["[Cast ReduceSum ReduceSum]"]
    apart = fused(graph, disable_fusion_pattern=("reduce_crossed",))
    assert operators(apart) == ["[Cast ReduceSum]", "[Cast ReduceSum]"]


def call(name: str, *types: TensorType, **attrs: object) -> Graph:
    """A graph of one operator."""
    builder = Builder()
    inputs = [builder.parameter(f"x{number}", given) for number, given in enumerate(types)]
    return Graph(name, tuple(inputs), builder.node(OPS[name], inputs, Attrs.of(attrs)).outs)


NORM = {"begin_norm_axis": 1, "begin_params_axis": 1}
ONE_KERNEL_EACH = [
    call("Softmax", ROWS, axis=-1),
    call("SoftmaxGrad", ROWS, ROWS),
    call("LogSoftmax", ROWS, axis=-1),
    call("LogSoftmaxGrad", ROWS, ROWS, axis=-1),
    call("SoftmaxCrossEntropyWithLogits", ROWS, ROWS),
    call("LayerNorm", ROWS, ROW, ROW, **NORM),
    call("LayerNormGrad", ROWS, ROWS, COLUMN, COLUMN, ROW, **NORM),
    call("GeLUGrad", ROWS, ROWS, ROWS),
    call("Adam", *[ROWS] * 3, *[SCALAR] * 6, ROWS),
    call("AdamWeightDecay", *[ROWS] * 3, *[SCALAR] * 5, ROWS),
]


@pytest.mark.parametrize("target", ["cpu", "gpu"])
@pytest.mark.parametrize("graph", ONE_KERNEL_EACH, ids=lambda graph: graph.name)
def test_composite_operators_are_one_kernel_each(graph: Graph, target: str) -> None:
    result = gk.optimize(graph, target=target, flags=f"--enable_expand_ops={graph.name}")
    assert len(result.operators) == kernels(result) == 1


@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend"])
def test_independent_updates_stay_apart(target: str) -> None:
    """Seven AdamWeightDecay that share their scalars: a kernel each, unless parallel_fusion joins them."""
    builder = Builder()
    scalars = [builder.parameter(f"s{number}", SCALAR) for number in range(5)]
    tensors = [[builder.parameter(f"x{net}_{number}", ROWS) for number in range(4)] for net in range(7)]
    outputs = [
        value
        for own in tensors
        for value in builder.node(OPS["AdamWeightDecay"], [*own[:3], *scalars, own[3]], Attrs()).outs
    ]
    graph = Graph("updates", (*scalars, *(value for own in tensors for value in own)), tuple(outputs))
    result = gk.optimize(graph, target=target, flags="--enable_expand_ops=AdamWeightDecay")
    assert kernels(result) == len(result.operators) == 7


@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend"])
def test_no_level_needs_more_kernels(target: str) -> None:
    """ReduceSum(Neg(x)): MindSpore's level 2 moves Neg behind the sum and ends with two kernels."""
    graph = trace(lambda x: ops.reduce_sum(ops.neg(x), axis=1), spec((64, 64)))
    counts = [len(gk.optimize(graph, level, target).operators) for level in (1, 2, 3)]
    assert counts == [1, 1, 1]


def test_every_boundary_has_one_reason() -> None:
    def net(x: Tensor, w: Tensor) -> Tensor:
        hidden = ops.matmul(ops.exp(x), w)
        total = ops.reduce_sum(hidden + 1.0)
        return ops.transpose(hidden * total, (1, 0))

    log = DecisionLog()
    result = gk.optimize(trace(net, spec((32, 32)), spec((32, 32))), log=log)
    assert kernels(result) >= 2
    refused = [d for d in log if d.pass_name == "graph_kernel_splitter" and d.code.startswith("not-fused")]
    assert len({(d.subject, d.other) for d in refused}) == len(refused)


def test_a_kernel_that_cannot_be_compiled_runs_on_the_host_library() -> None:
    """A product in a CPU cluster: the kernel is dissolved into calls of the library, and the report says so."""
    graph = trace(lambda x, w: ops.tanh(ops.matmul(x, w) + 1.0), spec((8, 4)), spec((4, 8)))
    compiled = gk.compile(graph, flags="--enable_cluster_ops=MatMul")
    x, w = np.ones((8, 4), np.float32), np.ones((4, 8), np.float32)
    np.testing.assert_allclose(compiled(x, w)[0], np.tanh(x @ w + 1), rtol=1e-6)
