from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_programs import programs

import graphkernel as gk
from graphkernel.cluster.liveness import peak_bytes
from graphkernel.passes.compact_tensor_liveness import compact_tensor_liveness
from graphkernel.runtime.invocation import make_frame
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph

CHAINS = """
kernel B(x: f32[16]) { t: f32[64, 16] = BroadcastTo(x, shape=(64, 16))
 return t }
kernel R(x: f32[64, 16]) { t: f32[16] = ReduceSum(x, axis=(0,), keep_dims=False)
 return t }
kernel M(a: f32[16], b: f32[16], c: f32[64, 16], d: f32[16]) {
 s: f32[16] = Add(a, b)
 t: f32[64, 16] = Mul(c, s)
 u: f32[16] = ReduceSum(t, axis=(0,), keep_dims=False)
 v: f32[16] = Add(u, d)
 return v }
graph f(x: f32[16], y: f32[16], z: f32[16]) {
 a: f32[64, 16] = B(x)
 b: f32[16] = R(a)
 c: f32[64, 16] = B(y)
 d: f32[64, 16] = B(z)
 e: f32[16] = R(d)
 g: f32[16] = M(b, x, c, e)
 return g
}
"""


def test_peak_counts_operands_results_and_views_once() -> None:
    graph = gk.parse(
        "graph f(x: f32[8]) { a: f32[8] = Exp(x)\n b: f32[2, 4] = Reshape(a, shape=(2, 4))\n"
        " c: f32[2, 4] = Exp(b)\n d: f32[2, 4] = Exp(c)\n return d }"
    )
    assert peak_bytes(graph) == 2 * 32


def test_peak_of_values_that_nobody_reads_and_of_returned_ones() -> None:
    graph = gk.parse("graph f(x: f32[8]) { a: f32[8] = Exp(x)\n b: f32[8] = Exp(a)\n return b, a }")
    assert peak_bytes(graph) == 2 * 32
    assert peak_bytes(gk.parse("graph f(x: f32[N]) { a: f32[N] = Exp(x)\n return a }")) is None


def test_the_arena_shrinks_with_the_peak() -> None:
    graph = gk.parse(CHAINS)
    after = compact_tensor_liveness(graph)
    before_peak, after_peak = peak_bytes(graph), peak_bytes(after)
    assert before_peak is not None
    assert after_peak is not None
    assert after_peak < before_peak
    arenas = [make_frame(gk.compile(g).program, {}).arena_bytes for g in (graph, after)]
    assert arenas[1] < arenas[0]
    arrays = [np.full(16, value, np.float32) for value in (1, 2, 3)]
    np.testing.assert_array_equal(gk.compile(after)(*arrays)[0], gk.evaluate(graph, arrays)[0])


@given(program=programs(), limit=st.integers(1, 3))
def test_the_peak_never_rises(program: tuple[Graph, list[np.ndarray]], limit: int) -> None:
    graph, arrays = program
    pieces = gk.optimize(graph, flags=f"--composite_op_limit_size={limit}")
    after = compact_tensor_liveness(pieces)
    assert compact_tensor_liveness(after) is after
    before_peak, after_peak = peak_bytes(pieces), peak_bytes(after)
    assert after is pieces or (after_peak or 0) < (before_peak or 0)
    for got, want in zip(evaluate(after, arrays), evaluate(pieces, arrays), strict=True):
        np.testing.assert_array_equal(got, want)
