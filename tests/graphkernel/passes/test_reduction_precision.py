"""Sums of narrow floats keep what a narrow accumulator would lose."""

import numpy as np
import pytest
from pass_runs import as_kernel, checked

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.passes.precision.raise_reduction_precision import raise_reduction_precision
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import dtype


def reductions(graph: Graph) -> list[str]:
    return [
        node.args[0].type.dtype.name
        for kernel in graph.operators
        if kernel.body is not None
        for node in kernel.body.operators
        if node.op.name.startswith("Reduce")
    ]


@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 5000), ("N", 5000)])
def test_sums_are_as_exact_as_float64_rounded_once(narrow: str, shape: tuple[int | str, ...]) -> None:
    graph = as_kernel(trace(lambda x: ops.reduce_sum(x, axis=1), spec(shape, narrow)))
    result = checked(raise_reduction_precision, graph)
    assert reductions(result) == ["float32"]
    x = np.random.default_rng(0).uniform(0, 2, (3, 5000)).astype(dtype(narrow).numpy)
    exact = x.astype(np.float64).sum(axis=1)
    (total,) = evaluate(result, [x])
    rounding = 2.0**-11 if narrow == "float16" else 2.0**-8
    np.testing.assert_allclose(total.astype(np.float64), exact, rtol=rounding * 1.001)


def test_a_cast_behind_the_sum_reads_what_was_not_rounded() -> None:
    def net(x: Tensor) -> tuple[Tensor, Tensor]:
        total = ops.reduce_sum(x, axis=0)
        return ops.cast(total, "float32"), total

    result = checked(raise_reduction_precision, as_kernel(trace(net, spec((2049,), "float16"))))
    whole, rounded = evaluate(result, [np.ones(2049, np.float16)])
    assert (float(whole), float(rounded)) == (2049.0, 2048.0)


def test_what_overflows_float16_overflows_still() -> None:
    result = checked(
        raise_reduction_precision, as_kernel(trace(lambda x: ops.reduce_sum(x, axis=0), spec((3,), "float16")))
    )
    assert np.isinf(evaluate(result, [np.full(3, 6e4, np.float16)])[0])


@pytest.mark.parametrize("dtype_name", ["float32", "float64", "int32"])
def test_other_data_types_stay(dtype_name: str) -> None:
    graph = as_kernel(trace(lambda x: ops.reduce_sum(x, axis=0), spec((4,), dtype_name)))
    assert checked(raise_reduction_precision, graph) is graph
