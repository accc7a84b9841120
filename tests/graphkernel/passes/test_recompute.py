from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.cluster.liveness import peak_bytes
from graphkernel.decisions import DecisionLog
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context
from graphkernel.passes.graph_kernel_recompute import graph_kernel_recompute, threshold
from kernelgen.tensor.graph import Graph

BYTES = 128 * 64 * 4


def waiting(x: Tensor, w: Tensor) -> Tensor:
    """The first kernel's result waits behind two products."""
    early = ops.exp(x) * 2.0
    return ops.matmul(ops.matmul(early, w), w) + early


def fused(rows: int | str = 128) -> Graph:
    return gk.optimize(gk.trace(waiting, gk.spec((rows, 64)), gk.spec((64, 64))))


def recomputed(graph: Graph, flags: str) -> tuple[Graph, DecisionLog]:
    log = DecisionLog()
    after = graph_kernel_recompute(graph, Context(Options.parse(flags), log=log))
    assert graph_kernel_recompute(after, Context(Options.parse(flags))) is after
    return after, log


@pytest.mark.parametrize(("least", "happens"), [(BYTES - 1, True), (BYTES, False)])
def test_the_gain_must_exceed_the_threshold(least: int, happens: bool) -> None:
    graph = fused()
    after, log = recomputed(graph, f"--recompute_increment_threshold={least} --recompute_peak_threshold=1000000000")
    assert (after is not graph) == (happens or (least == 0 and False))
    assert bool(log.with_code("recomputed")) == happens


def test_the_peak_of_live_bytes_drops_and_the_numbers_stay() -> None:
    graph = fused()
    after, log = recomputed(graph, "--recompute_increment_threshold=1")
    before_peak, after_peak = peak_bytes(graph), peak_bytes(after)
    assert before_peak is not None
    assert after_peak == before_peak - BYTES
    (decision,) = log.with_code("recomputed")
    assert decision.message == "long term, 32 KiB die earlier, 0 bytes live longer"
    arrays = [np.linspace(-1, 1, 128 * 64, dtype=np.float32).reshape(128, 64), np.eye(64, dtype=np.float32) / 2]
    np.testing.assert_array_equal(gk.evaluate(after, arrays)[0], gk.evaluate(graph, arrays)[0])
    np.testing.assert_allclose(gk.compile(after)(*arrays)[0], gk.evaluate(graph, arrays)[0], rtol=1e-5)


def test_long_edges_take_the_lesser_threshold_and_short_ones_the_peak() -> None:
    both = Options(recompute_increment_threshold=8, recompute_peak_threshold=64)
    assert threshold(both, long_term=True) == 8
    assert threshold(both, long_term=False) == 64
    assert threshold(Options(recompute_increment_threshold=8), long_term=False) is None
    assert threshold(Options(), long_term=True) is None


def test_symbolic_sizes_are_compared_for_all_extents() -> None:
    graph = fused("N")
    assert recomputed(graph, "--recompute_increment_threshold=255")[0] is not graph
    assert recomputed(graph, "--recompute_increment_threshold=256")[0] is graph


def test_an_operand_that_would_live_longer_is_counted() -> None:
    def net(x: Tensor, w: Tensor) -> Tensor:
        product = ops.matmul(x, w)
        early = ops.exp(product)
        return ops.matmul(early, w) + early

    graph = gk.optimize(gk.trace(net, gk.spec((16, 512)), gk.spec((512, 512))))  # rows for a library
    after, log = recomputed(graph, "--recompute_increment_threshold=1")
    assert after is graph
    assert "32 KiB die earlier, 32 KiB live longer" in log.with_code("not-recomputed")[0].message


def test_the_size_limit_of_kernels_holds() -> None:
    after, log = recomputed(graph := fused(), "--recompute_increment_threshold=1 --composite_op_limit_size=2")
    assert after is graph
    assert "composite_op_limit_size=2" in log.with_code("not-recomputed")[0].message


def test_the_pipeline_runs_it_when_a_threshold_is_given() -> None:
    graph = gk.optimize(
        gk.trace(waiting, gk.spec((128, 64)), gk.spec((64, 64))), flags="--recompute_increment_threshold=1"
    )
    assert any(node.body is not None and node.body.name.endswith("_recompute") for node in graph.operators)
