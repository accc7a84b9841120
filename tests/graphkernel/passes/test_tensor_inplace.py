from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from random_programs import programs

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor
from graphkernel.passes.effects.tensor_inplace import tensor_inplace
from graphkernel.runtime.invocation import make_frame
from kernelgen.tensor.graph import Graph

Program = tuple[Graph, list[np.ndarray[Any, Any]]]


def runs_as_it_means(graph: Graph, arrays: list[np.ndarray[Any, Any]]) -> None:
    """Two calls give the meaning, and no input is touched that the graph does not assign to."""
    executable = gk.compile(graph, opt_level=0, host="numpy")
    assert executable.report.fallbacks == ()
    expected = gk.evaluate(graph, arrays)
    written = {alias.input for alias in graph.aliases}
    for _ in range(2):
        given = [array.copy() for array in arrays]
        results = executable(*given)
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
        for position, (array, before) in enumerate(zip(given, arrays, strict=True)):
            if position not in written:
                np.testing.assert_array_equal(array, before)


def between_products(x: Tensor, w: Tensor) -> Tensor:
    first = ops.tanh(ops.matmul(x, w)) + 1.0
    return ops.matmul(ops.exp(ops.matmul(first, w)) * first, w)


def test_operand_and_result_share_memory() -> None:
    graph = gk.optimize(gk.trace(between_products, gk.spec((16, 64)), gk.spec((64, 64))))  # rows for a library
    inplace = tensor_inplace(graph)
    arrays = [np.full((16, 64), 0.1, np.float32), np.eye(64, dtype=np.float32)]
    runs_as_it_means(inplace, arrays)
    before, after = (
        make_frame(gk.compile(g, opt_level=0, host="numpy").program, {}).arena_bytes for g in (graph, inplace)
    )
    assert before == 2 * 16 * 64 * 4
    assert after == 0, "the products' own arrays hold the kernels' results"


@given(program=programs())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_random_programs_run_in_place(program: Program) -> None:
    graph, arrays = program
    single = gk.optimize(graph, flags="--composite_op_limit_size=2 --enable_auto_tensor_inplace=true")
    runs_as_it_means(single, arrays)


UNSAFE = {
    "an input": "a: f32[8] = K(x)\n return a",
    "a value read later": "p: f32[8] = Neg(x)\n a: f32[8] = K(p)\n b: f32[8] = Add(a, p)\n return b",
    "a returned value": "p: f32[8] = Neg(x)\n a: f32[8] = K(p)\n return a, p",
    "a returned view": (
        "p: f32[8] = Neg(x)\n v: f32[2, 4] = Reshape(p, shape=(2, 4))\n a: f32[8] = K(p)\n return a, v"
    ),
    "a view of an input": (
        "v: f32[2, 4] = Reshape(x, shape=(2, 4))\n w: f32[8] = Reshape(v, shape=(8,))\n a: f32[8] = K(w)\n return a"
    ),
    "a constant": "const c: f32[8] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]\n a: f32[8] = K(c)\n return a",
    "an operand twice": "p: f32[8] = Neg(x)\n a: f32[8] = T(p, p)\n return a",
    "two in a row": "p: f32[8] = Neg(x)\n a: f32[8] = K(p)\n b: f32[8] = K(a)\n c: f32[8] = K(b)\n return c, b",
    "an assigned input, read later": "a: f32[8] = K(x)\n b: f32[8] = Add(a, x)\n return b, a -> x",
    "an assigned input": "a: f32[8] = K(x)\n return a -> x",
}


@pytest.mark.parametrize("statements", UNSAFE.values(), ids=list(UNSAFE))
def test_the_plan_copies_what_a_kernel_must_not_write_over(statements: str) -> None:
    graph = gk.parse(
        "kernel K(a: f32[8]) { t: f32[8] = Exp(a)\n return t -> a }\n"
        "kernel T(a: f32[8], b: f32[8]) { t: f32[8] = Mul(a, b)\n u: f32[8] = Add(t, b)\n return u -> a }\n"
        f"graph f(x: f32[8]) {{\n {statements}\n}}\n"
    )
    runs_as_it_means(graph, [np.linspace(-1, 1, 8, dtype=np.float32)])
    runs_as_it_means(tensor_inplace(graph), [np.linspace(-1, 1, 8, dtype=np.float32)])
