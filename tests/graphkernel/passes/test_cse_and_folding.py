from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor
from graphkernel.passes.cse import graph_kernel_cse
from graphkernel.passes.fold import constant_folding
from kernelgen.tensor.graph import Graph


def count(graph: Graph, name: str) -> int:
    return [node.op.name for node in graph.operators].count(name)


@pytest.mark.parametrize("rows", [6, "N"])
def test_a_reduction_is_found_behind_reshapes(rows: int | str) -> None:
    def net(x: Tensor) -> tuple[Tensor, ...]:
        flat = ops.reshape(x, (x.shape[0] * 3, 4))
        return ops.reduce_sum(x, 2), ops.reduce_sum(flat, 1, keep_dims=True), ops.reduce_sum(flat, 0)

    graph = gk.trace(net, gk.spec((rows, 3, 4)))
    after = graph_kernel_cse(graph)
    assert count(after, "ReduceSum") == 2, "the sum over the other axis is another one"
    assert graph_kernel_cse(after) is after
    x = np.random.default_rng(0).standard_normal((6, 3, 4)).astype(np.float32)
    for got, want in zip(gk.evaluate(after, [x]), gk.evaluate(graph, [x]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_reductions_of_other_elements_or_kinds_stay() -> None:
    def net(x: Tensor) -> tuple[Tensor, ...]:
        turned = ops.transpose(x, (1, 0))
        return ops.reduce_sum(x, 1), ops.reduce_sum(turned, 1), ops.reduce_max(x, 1), ops.reduce_sum(ops.neg(x), 1)

    graph = gk.trace(net, gk.spec((4, 4)))
    assert graph_kernel_cse(graph) is graph


def test_calls_with_other_marks_are_not_equal() -> None:
    text = "kernel K(x: f32[4]) { t: f32[4] = Exp(x)\n return t }\ngraph f(x: f32[4]) { a: f32[4] = K(x, mark=1)\n"
    graph = gk.parse(text + " b: f32[4] = K(x, mark=2)\n c: f32[4] = K(x, mark=1)\n return a, b, c }")
    assert len(graph_kernel_cse(graph).operators) == 2


def test_divisions_by_zero_fold_to_what_numpy_gives() -> None:
    graph = gk.parse(
        "graph f() { const z: f32[2] = [0.0, 1.0]\n a: f32[2] = RealDiv(z, 0.0)\n b: f32[2] = Reciprocal(z)\n return a, b }"
    )
    after = constant_folding(graph)
    assert after.operators == ()
    np.testing.assert_array_equal(gk.evaluate(after, [])[0], np.array([np.nan, np.inf]))
    np.testing.assert_array_equal(gk.evaluate(after, [])[1], np.array([np.inf, 1]))


def test_large_results_of_small_operands_stay_operators() -> None:
    graph = gk.parse("graph f() { a: f32[70000] = BroadcastTo(1.0:f32, shape=(70000,))\n return a }")
    assert constant_folding(graph) is graph
