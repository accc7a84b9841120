"""Kernels that store bfloat16 and compute float32."""

from typing import Any

import numpy as np
import pytest
from pass_runs import as_kernel, checked

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.passes.precision.convert_bfloat16 import KEEPERS, convert_bfloat16
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import dtype

BFLOAT16 = dtype("bfloat16")


def computing_in_bfloat16(graph: Graph) -> list[str]:
    """The operators of kernels, keepers and moves apart, that take or give bfloat16."""
    return [
        node.op.name
        for kernel in graph.operators
        if kernel.body is not None
        for node in kernel.body.operators
        if node.op not in KEEPERS | {RESHAPE}
        and any(value.type.dtype == BFLOAT16 for value in (*node.args, *node.outs))
    ]


def normalized(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    centred = x - ops.reduce_sum(x, axis=1, keep_dims=True) / 64.0
    scaled = centred * ops.rsqrt(ops.reduce_sum(centred * centred, axis=1, keep_dims=True) / 64.0 + 1e-3)
    return ops.select(scaled > y, scaled, ops.maximum(y, 0.1)), ops.reshape(scaled, (scaled.shape[0] * 64,))


def product(x: Tensor, y: Tensor) -> Tensor:
    return ops.matmul(ops.exp(x * 0.1), ops.transpose(y, (1, 0))) * 0.5


@pytest.mark.parametrize("net", [normalized, product])
@pytest.mark.parametrize("rows", [3, "N"])
def test_nothing_but_keepers_sees_bfloat16(net: Any, rows: int | str) -> None:
    graph = as_kernel(trace(net, spec((rows, 64), "bfloat16"), spec((rows, 64), "bfloat16")))
    result = checked(convert_bfloat16, graph)
    assert computing_in_bfloat16(graph)
    assert computing_in_bfloat16(result) == []


@pytest.mark.parametrize("net", [normalized, product])
def test_results_come_nearer_to_the_truth(net: Any) -> None:
    narrow, wide = (trace(net, spec((3, 64), kind), spec((3, 64), kind)) for kind in ("bfloat16", "float32"))
    arrays = [np.random.default_rng(i).standard_normal((3, 64)).astype(BFLOAT16.numpy) for i in range(2)]
    result = checked(convert_bfloat16, as_kernel(narrow))
    truth = evaluate(wide, [array.astype(np.float32) for array in arrays])
    for exact, before, after in zip(truth, evaluate(narrow, arrays), evaluate(result, arrays), strict=True):
        worst_before, worst_after = (np.abs(found.astype(np.float32) - exact).max() for found in (before, after))
        assert worst_after <= worst_before
        assert worst_after <= 2.0**-8 * np.abs(exact).max()


def test_a_cast_that_the_user_wrote_rounds_still() -> None:
    graph = as_kernel(trace(lambda x: ops.cast(x + 0.001, "float32"), spec((1,), "bfloat16")))
    result = checked(convert_bfloat16, graph)
    assert evaluate(result, [np.ones(1, BFLOAT16.numpy)])[0] == 1.0


def test_other_types_and_what_is_outside_kernels_stay() -> None:
    for graph in (
        trace(normalized, *[spec((3, 64), "bfloat16")] * 2),
        as_kernel(trace(normalized, *[spec((3, 64))] * 2)),
    ):
        assert checked(convert_bfloat16, graph) is graph
